//! A member's requirements of what it receives.

/// The requirements of a member, the same for every protocol. A protocol may do better than it is asked to, and says so
/// where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The order in which complete objects are handed up.
    pub order: Order,
    /// The earlier data that it asks for when it joins.
    pub join: Join,
    /// Whether it asks again for what is lost. If not, it sends nothing: it takes what arrives, what others have asked
    /// for too, and gives up the rest.
    pub is_reliable: bool,
}

impl Default for Subscription {
    fn default() -> Self {
        Self { order: Order::default(), join: Join::default(), is_reliable: true }
    }
}

/// The order in which what is complete is handed up. Within a stream, bytes and messages have their sender's order in
/// any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Each object as soon as it is complete, whatever is missing of those before it.
    #[default]
    AsComplete,
    /// The order in which its sender gave them; between senders there is none. What is complete waits for what was sent
    /// before it, until that is complete or given up.
    BySender,
}

/// The data sent before a member joined that it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// The object of which it hears first, from its beginning if the sender still has that.
    #[default]
    Object,
    /// Of a stream, the data from now on; other objects whole.
    Now,
    /// All objects that the sender still has.
    Everything,
}
