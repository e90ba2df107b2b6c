mod hostile;
mod members;
mod net;
mod requests;
mod transfers;
