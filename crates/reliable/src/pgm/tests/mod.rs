mod hostile;
mod members;
mod net;
mod transfers;
