//! rabbitmq
