use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use ::redis::{Cmd, Value};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::RedisBroker;
use super::connection::{Link, script_call};
use super::entry::{CONTENT_TYPE, DATA, array, text};
use super::failure::Failure;
use super::topology::PUBLISH;
use crate::broker::PublishError;
use crate::broker::cloud_events::{self, Binding, CloudEventError, ContentMode};
use crate::domain::Message;

/// What one call of the script holds at most, unless a single entry is larger: the server does
/// nothing else meanwhile.
const CALL_ENTRIES: usize = 256;
const CALL_BYTES: usize = 1 << 20;

/// How much later than it was told the server may answer that replicas were too slow.
const GRACE: Duration = Duration::from_millis(500);

/// Appends the messages to their streams: a stream's in order, streams side by side.
pub(super) async fn publish(
    broker: &RedisBroker,
    messages: &[Message],
) -> Vec<Result<(), PublishError>> {
    let deadline = Instant::now() + broker.options.confirm_within;
    let link = broker.publishing.get(broker.options.confirm_within).await;
    let streams = by_stream(broker, messages).into_iter();
    let sending = streams.map(|(stream, offers)| {
        let sender = Sender::new(broker, stream, link.clone(), deadline);
        sender.send(offers)
    });
    let mut results: Vec<_> = messages
        .iter()
        .map(|_| Err(PublishError::withheld()))
        .collect();
    for (index, result) in join_all(sending).await.into_iter().flatten() {
        if let Some(place) = results.get_mut(index) {
            *place = result;
        }
    }
    if let (Ok(link), Some(replication)) = (&link, broker.replication)
        && results.iter().any(Result::is_ok)
        && let Err(failure) = replication.wait(link, deadline).await
    {
        let taken = results.iter_mut().filter(|result| result.is_ok());
        taken.for_each(|result| *result = Err(PublishError::transient(failure.clone())));
    }
    results
}

/// How many replicas must have an entry before it counts as published.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replication {
    pub(super) replicas: u32,
    pub(super) within: Duration,
}

impl Replication {
    /// Waits until they have all that was written over this connection.
    async fn wait(self, link: &Link, deadline: Instant) -> Result<(), Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = self.within.min(left).as_millis().max(1);
        let mut wait = ::redis::cmd("WAIT");
        // Zero would mean for ever.
        wait.arg(self.replicas)
            .arg(u64::try_from(limit).unwrap_or(u64::MAX));
        match link.run(&wait, self.within.min(left) + GRACE).await? {
            Value::Int(reached) if reached >= i64::from(self.replicas) => Ok(()),
            Value::Int(reached) => Err(Failure::new(format!(
                "only {reached} of {} replicas had it within {:?}; it will be offered again, and \
                 inboxes absorb that",
                self.replicas, self.within
            ))),
            _ => Err(Failure::unexpected()),
        }
    }
}

/// A message that is to be sent.
struct Offer<'a> {
    index: usize,
    /// Numbers the ordering keys of a call of `publish`.
    lane: usize,
    fields: Result<Fields<'a>, PublishError>,
}

/// An entry's fields: names and values.
struct Fields<'a>(Vec<(Cow<'static, str>, Cow<'a, str>)>);

impl<'a> Fields<'a> {
    fn of(message: &'a Message, mode: ContentMode) -> Result<Self, CloudEventError> {
        let (mut fields, content_type, data): (Vec<_>, _, _) = match mode {
            ContentMode::Binary => {
                let headers = cloud_events::binary(message, Binding::REDIS)?.into_iter();
                let fields = headers.map(|(name, value)| (name.into(), value.into()));
                (
                    fields.collect(),
                    cloud_events::JSON,
                    Cow::Borrowed(message.payload.as_str()),
                )
            }
            ContentMode::Structured => (
                Vec::new(),
                cloud_events::STRUCTURED,
                cloud_events::structured(message)?.into(),
            ),
        };
        fields.push((CONTENT_TYPE.into(), content_type.into()));
        fields.push((DATA.into(), data));
        Ok(Self(fields))
    }

    fn bytes(&self) -> usize {
        let fields = self.0.iter();
        fields.map(|(name, value)| name.len() + value.len()).sum()
    }
}

fn by_stream<'a>(
    broker: &RedisBroker,
    messages: &'a [Message],
) -> BTreeMap<String, Vec<Offer<'a>>> {
    let mut lanes = HashMap::new();
    let mut streams: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        let next = lanes.len();
        let lane = *lanes.entry(message.metadata.ordering_key()).or_insert(next);
        let offers = streams.entry(broker.stream_of(&message.metadata));
        offers.or_default().push(Offer {
            index,
            lane,
            fields: fields(broker, message),
        });
    }
    streams
}

fn fields<'a>(broker: &RedisBroker, message: &'a Message) -> Result<Fields<'a>, PublishError> {
    let fields = Fields::of(message, broker.options.content_mode);
    let fields = fields.map_err(PublishError::permanent)?;
    let (bytes, limit) = (fields.bytes(), broker.max_message_bytes);
    if bytes > limit {
        return Err(PublishError::permanent(format!(
            "the message has {bytes} bytes with its attributes, and {limit} are the limit; publish \
             a reference to its content, or raise RedisBroker::max_message_bytes"
        )));
    }
    Ok(fields)
}

/// Sends what belongs to one stream.
struct Sender<'a> {
    broker: &'a RedisBroker,
    stream: String,
    /// A failure once it is not known what became of a call: nothing is sent after that.
    link: Result<Link, Failure>,
    deadline: Instant,
    failed_lanes: HashSet<usize>,
    results: Vec<(usize, Result<(), PublishError>)>,
}

impl<'a> Sender<'a> {
    fn new(
        broker: &'a RedisBroker,
        stream: String,
        link: Result<Link, Failure>,
        deadline: Instant,
    ) -> Self {
        Self {
            broker,
            stream,
            link,
            deadline,
            failed_lanes: HashSet::new(),
            results: Vec::new(),
        }
    }

    async fn send(mut self, offers: Vec<Offer<'_>>) -> Vec<(usize, Result<(), PublishError>)> {
        let mut call = self.new_call();
        for offer in offers {
            let fits = offer
                .fields
                .as_ref()
                .is_ok_and(|fields| call.has_room_for(fields));
            if !fits {
                // What can't be sent waits for the answers to what is before it, too.
                let full = std::mem::replace(&mut call, self.new_call());
                self.run(full).await;
            }
            match offer.fields {
                Ok(fields) if !self.failed_lanes.contains(&offer.lane) => {
                    call.add(offer.index, offer.lane, &fields);
                }
                fields => self.settle(offer.index, offer.lane, fields.map(drop)),
            }
        }
        self.run(call).await;
        self.results
    }

    async fn run(&mut self, call: Call) {
        if call.offers.is_empty() {
            return;
        }
        let answers = self.answers(&call).await;
        match answers {
            Ok(answers) => {
                for ((index, lane), answer) in call.offers.into_iter().zip(answers) {
                    let result = self.result(&answer);
                    self.settle(index, lane, result);
                }
            }
            Err(failure) => {
                for &(index, lane) in &call.offers {
                    let error = PublishError::transient(failure.clone());
                    self.settle(index, lane, Err(error));
                }
                self.link = Err(failure);
            }
        }
    }

    async fn answers(&self, call: &Call) -> Result<Vec<String>, Failure> {
        let link = self.link.clone()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::late(self.broker.options.confirm_within));
        }
        let answers = link.run_script(&PUBLISH, &call.command, left).await?;
        let answers: Vec<_> = array(answers)?
            .into_iter()
            .map(text)
            .collect::<Result<_, _>>()?;
        match answers.len() == call.offers.len() {
            true => Ok(answers),
            false => Err(Failure::unexpected()),
        }
    }

    /// What the server's answer to an entry means. It never speaks of the entry's content, so any
    /// error may pass.
    fn result(&self, answer: &str) -> Result<(), PublishError> {
        let failure = match answer.split_at_checked(1) {
            Some(("+", _)) => return Ok(()),
            Some(("-", _)) => return Err(PublishError::withheld()),
            Some(("!", error)) => Failure::of_answer(error),
            Some(("?", _)) => Failure::new(
                "it is missing and must not be made here; make it with its consumers' groups \
                 (XGROUP CREATE <stream> <group> 0 MKSTREAM), or let BrokerOptions::declare"
                    .to_owned(),
            ),
            _ => Failure::unexpected(),
        };
        if let (Ok(link), true) = (&self.link, failure.is_of_connection()) {
            link.retire();
        }
        Err(PublishError::transient(failure.at(&self.stream)))
    }

    /// Keeps the result, unless its lane has failed before it.
    fn settle(&mut self, index: usize, lane: usize, result: Result<(), PublishError>) {
        let result = match self.failed_lanes.contains(&lane) {
            true => Err(PublishError::withheld()),
            false => result,
        };
        if result.is_err() {
            self.failed_lanes.insert(lane);
        }
        self.results.push((index, result));
    }

    fn new_call(&self) -> Call {
        let mut command = script_call(&PUBLISH, &self.stream);
        match self.broker.keep {
            None => command.arg(""),
            Some(age) => command.arg(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        };
        command.arg(u8::from(self.broker.options.declare));
        Call {
            command,
            offers: Vec::new(),
            bytes: 0,
        }
    }
}

/// Entries that go to the server together.
struct Call {
    command: Cmd,
    /// Index and lane of each.
    offers: Vec<(usize, usize)>,
    bytes: usize,
}

impl Call {
    fn has_room_for(&self, fields: &Fields<'_>) -> bool {
        self.offers.is_empty()
            || (self.offers.len() < CALL_ENTRIES && self.bytes + fields.bytes() <= CALL_BYTES)
    }

    fn add(&mut self, index: usize, lane: usize, fields: &Fields<'_>) {
        self.bytes += fields.bytes();
        self.offers.push((index, lane));
        self.command.arg(lane).arg(fields.0.len() * 2);
        for (name, value) in &fields.0 {
            self.command.arg(name.as_bytes()).arg(value.as_bytes());
        }
    }
}
