/// A place in the runtime at which a test can let something happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Point {
    /// A unit of work is complete and its commit begins. A failure rolls it back.
    BeforeCommit,
    /// A unit of work is committed, and nobody knows yet: neither the caller nor the relay. A
    /// failure is a lost answer.
    AfterCommit,
    /// The relay hands messages to the broker. A failure is a broker that can't be reached.
    BeforePublish,
    /// The broker has taken messages, and the relay does not know yet. A failure is a lost answer.
    AfterPublish,
    /// The relay writes down how far its shards have come. A failure is one of the database.
    BeforeSettle,
    /// The relay or a consumer writes down what it parks. A failure is one of the database.
    BeforePark,
    /// A consumer has the message's inbox row in its transaction and calls the handler. A failure
    /// is one of the database.
    BeforeHandle,
    /// The effect is committed, and the broker is told next. A failure is an acknowledgement that
    /// never arrives: the message is given back.
    BeforeAck,
}

#[cfg(feature = "fault-points")]
impl Point {
    /// All points, in the order in which a message passes them.
    pub const ALL: [Self; 8] = [
        Self::BeforeCommit,
        Self::AfterCommit,
        Self::BeforePublish,
        Self::AfterPublish,
        Self::BeforeSettle,
        Self::BeforePark,
        Self::BeforeHandle,
        Self::BeforeAck,
    ];

    /// Its name in [`VARIABLE`](super::VARIABLE).
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
            Self::BeforePublish => "before-publish",
            Self::AfterPublish => "after-publish",
            Self::BeforeSettle => "before-settle",
            Self::BeforePark => "before-park",
            Self::BeforeHandle => "before-handle",
            Self::BeforeAck => "before-ack",
        }
    }
}

#[cfg(feature = "fault-points")]
impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
