//! What happens in a group: partitions come and go, positions are stored or not.

use std::sync::Arc;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::topic_partition_list::TopicPartitionList;
use tracing::{debug, info};

use super::assignment::{Assignment, Place};
use super::consume::list_of;
use super::context::Context;
use crate::broker::BrokerError;

/// Called in the member's thread, within its polls.
pub(super) struct GroupEvents {
    pub(super) context: Context,
    pub(super) assignment: Arc<Assignment>,
}

impl ConsumerContext for GroupEvents {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => {
                info!(partitions = partitions.count(), "partitions were assigned");
                self.assignment.assign(places(partitions));
            }
            Rebalance::Revoke(partitions) => {
                info!(partitions = partitions.count(), "partitions were revoked");
                let positions = self.assignment.revoke(places(partitions));
                // What was lost belongs to others already, who would be set back.
                if !positions.is_empty() && !consumer.assignment_lost() {
                    let list = list_of(&positions);
                    let told = list.and_then(|list| consumer.commit(&list, CommitMode::Sync));
                    if let Err(error) = told {
                        debug!(%error, "can't commit offsets of partitions that go");
                    }
                }
            }
            Rebalance::Error(error) => debug!(%error, "rebalancing failed"),
        }
    }

    /// A partition that went while it was paused is still paused when it comes back.
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance
            && let Err(error) = consumer.resume(partitions)
        {
            let error = BrokerError::new("beginning to receive", error);
            self.assignment.fail(error);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        if let Err(error) = result {
            debug!(%error, "offsets were not committed");
            self.assignment.not_told(places(offsets));
        }
    }
}

impl ClientContext for GroupEvents {
    fn log(&self, level: RDKafkaLogLevel, fac: &str, log_message: &str) {
        self.context.log(level, fac, log_message);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.context.stats_raw(statistics);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.context.error(error, reason);
    }
}

fn places(list: &TopicPartitionList) -> Vec<Place> {
    let elements = list.elements();
    elements
        .iter()
        .map(|element| Place {
            topic: element.topic().into(),
            partition: element.partition(),
        })
        .collect()
}
