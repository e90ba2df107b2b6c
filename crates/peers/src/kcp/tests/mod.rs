mod closing;
mod fec;
mod figures;
mod hostile;
mod pair;
mod random;
mod transfer;
