use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use outbox_runtime::Message;
use outbox_runtime::broker::{
    Acknowledge, BrokerError, Deliveries, Delivery, Sharing, Subscriber, Subscription,
};
use tokio::sync::watch;

/// A broker with partitions that lets anybody read any of them: it shares nothing out itself.
///
/// Who subscribes to a partition gets all of it that is not acknowledged, from the oldest on.
#[derive(Clone)]
pub struct PartitionedBroker {
    partitions: Arc<Mutex<Vec<Partition>>>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Partition {
    log: Vec<Message>,
    acknowledged: BTreeSet<usize>,
    readers: usize,
    most_readers: usize,
}

impl PartitionedBroker {
    /// With so many partitions.
    pub fn new(partitions: usize) -> Self {
        let partitions = (0..partitions).map(|_| Partition::default()).collect();
        Self {
            partitions: Arc::new(Mutex::new(partitions)),
            news: watch::Sender::new(()),
        }
    }

    /// Takes a message.
    pub fn publish(&self, message: &Message) {
        let mut hasher = DefaultHasher::new();
        message.metadata.ordering_key().hash(&mut hasher);
        let mut partitions = self.lock();
        let index = usize::try_from(hasher.finish() % partitions.len() as u64).unwrap();
        partitions[index].log.push(message.clone());
        drop(partitions);
        self.news.send_replace(());
    }

    /// How many messages are not acknowledged.
    pub fn pending(&self) -> usize {
        let partitions = self.lock();
        let pending = |one: &Partition| one.log.len() - one.acknowledged.len();
        partitions.iter().map(pending).sum()
    }

    /// How many partitions are read at this moment.
    pub fn read(&self) -> usize {
        self.lock().iter().filter(|one| one.readers > 0).count()
    }

    /// How many read one partition at a time, at most.
    pub fn most_readers(&self) -> usize {
        let partitions = self.lock();
        partitions.iter().map(|one| one.most_readers).max().unwrap()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Partition>> {
        self.partitions.lock().unwrap()
    }
}

#[async_trait]
impl Subscriber for PartitionedBroker {
    fn sharing(&self) -> Sharing {
        let partitions = u16::try_from(self.lock().len()).unwrap();
        Sharing::Leased {
            partitions: NonZeroU16::new(partitions).unwrap(),
        }
    }

    async fn subscribe(
        &self,
        subscription: Subscription,
    ) -> Result<Box<dyn Deliveries>, BrokerError> {
        let index = usize::from(subscription.partition.expect("a partition is named"));
        let mut partitions = self.lock();
        let partition = &mut partitions[index];
        partition.readers += 1;
        partition.most_readers = partition.most_readers.max(partition.readers);
        Ok(Box::new(Reader {
            broker: self.clone(),
            index,
            next: 0,
            news: self.news.subscribe(),
        }))
    }
}

struct Reader {
    broker: PartitionedBroker,
    index: usize,
    next: usize,
    news: watch::Receiver<()>,
}

impl Reader {
    fn take(&mut self) -> Option<Delivery> {
        let partitions = self.broker.lock();
        let partition = &partitions[self.index];
        let place = (self.next..partition.log.len())
            .find(|place| !partition.acknowledged.contains(place))?;
        self.next = place + 1;
        let slip = Slip {
            broker: self.broker.clone(),
            index: self.index,
            place,
        };
        Some(Delivery::new(partition.log[place].clone(), 1, slip))
    }
}

#[async_trait]
impl Deliveries for Reader {
    async fn next(&mut self) -> Result<Option<Delivery>, BrokerError> {
        loop {
            self.news.mark_unchanged();
            if let Some(delivery) = self.take() {
                return Ok(Some(delivery));
            }
            if self.news.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.broker.lock()[self.index].readers -= 1;
    }
}

struct Slip {
    broker: PartitionedBroker,
    index: usize,
    place: usize,
}

#[async_trait]
impl Acknowledge for Slip {
    async fn ack(self: Box<Self>) -> Result<(), BrokerError> {
        self.broker.lock()[self.index]
            .acknowledged
            .insert(self.place);
        Ok(())
    }

    /// It comes again to the next reader.
    async fn nack(self: Box<Self>) -> Result<(), BrokerError> {
        Ok(())
    }
}
