//! What every broker has to pass, against a real server.

mod capabilities;
pub mod cloud_events;
pub mod delivering;
mod ground;
pub mod logs;
mod member;
pub mod outages;
pub mod publishing;
pub mod relays;
pub mod secrets;
pub mod topology;

pub use capabilities::Capabilities;
pub use ground::Ground;
pub use member::{Member, event, wait_until};

/// Makes a test of each part of the suite for one [`TestBroker`](super::TestBroker).
#[macro_export]
macro_rules! broker_suite {
    ($kit:ty) => {
        $crate::broker_suite!(@tests $kit,
            cloud_events::{
                a_plain_client_sees_a_cloud_event_in_binary_mode,
                a_plain_client_sees_a_cloud_event_in_structured_mode,
                a_cloud_event_without_our_extensions_is_delivered,
                what_is_no_cloud_event_is_delivered_with_its_bytes,
                a_foreign_topic_is_mapped,
                a_foreign_topic_that_is_missing_stops_nothing_and_is_read_once_it_is_there,
            },
            delivering::{
                all_of_a_message_arrives_in_both_modes,
                each_aggregate_arrives_in_its_order,
                each_group_gets_what_it_asked_for,
                types_without_a_handler_are_delivered_when_told,
                what_was_not_acknowledged_comes_again_in_order,
                what_was_given_back_comes_again_before_what_follows,
                members_of_a_group_share_its_messages_and_take_over,
                a_slow_member_holds_no_more_than_its_prefetch,
            },
            logs::{
                no_payload_is_logged,
            },
            outages::{
                a_broker_that_is_down_at_the_start_is_waited_for,
                nothing_is_lost_when_the_broker_is_killed_midway,
                a_broker_that_stands_still_is_not_waited_for_for_ever,
            },
            publishing::{
                a_repetition_counts_as_published,
                a_message_that_is_too_large_stops_its_own_aggregate_alone,
                a_message_that_is_no_cloud_event_is_refused_for_good,
                a_call_that_is_dropped_leaves_the_broker_usable,
            },
            relays::{
                a_thousand_events_of_one_aggregate_through_two_relays_arrive_in_order,
            },
            secrets::{
                a_password_is_needed_and_never_told,
                a_certificate_of_ones_own_is_trusted_when_told,
            },
            topology::{
                what_was_deleted_while_running_is_made_again,
                what_may_not_be_made_is_reported,
                types_can_have_topics_of_their_own,
            },
        );
    };
    (@tests $kit:ty, $($module:ident::{$($name:ident),+ $(,)?}),+ $(,)?) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::brokers::suite::$module::$name::<$kit>().await;
            })+
        })+
    };
}
