/// Parity that is sent before anybody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proactive {
    /// As much as the group asks for in any case, by its requests so far: it costs no bytes and saves a round.
    Adaptive,
    /// This many packets after each block, or transmission group. For receivers that do not ask.
    Fixed(u16),
}
