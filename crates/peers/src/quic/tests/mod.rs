mod closing;
mod figures;
mod hostile;
mod pair;
mod transfer;
