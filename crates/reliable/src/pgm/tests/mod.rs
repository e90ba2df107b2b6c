mod net;
mod transfers;
