use super::*;

fn parse(url: &str) -> Result<Config, ConfigError> {
    Config::parse(url, &BrokerOptions::new())
}

fn refusal(url: &str) -> String {
    parse(url)
        .err()
        .map_or_else(String::new, |error| error.to_string())
}

#[test]
fn brokers_are_told_with_and_without_port() {
    for (url, servers) in [
        ("kafka://localhost", "localhost:9092"),
        (
            "kafka://a:1,b-2.example,[::1],[::1]:7/",
            "a:1,b-2.example:9092,[::1]:9092,[::1]:7",
        ),
    ] {
        assert_eq!(parse(url).unwrap().servers(), servers);
    }
    for url in [
        "kafka://",
        "kafka://a:b",
        "kafka://a:0",
        "kafka://a,,b",
        "kafka://a b",
        "kafka://:1",
    ] {
        assert!(refusal(url).contains("host:port"), "{url}");
    }
    assert!(refusal("kafka://a/topic").contains("has no path"));
    assert!(refusal("http://a").contains("kafkas://"));
}

#[test]
fn credentials_are_decoded_and_those_of_the_options_go_first() {
    let config = parse("kafka://me%40here:s%3acret@a").unwrap();
    let client = config.client([], []).unwrap();
    assert_eq!(client.get("sasl.username"), Some("me@here"));
    assert_eq!(client.get("sasl.password"), Some("s:cret"));
    assert_eq!(client.get("security.protocol"), Some("sasl_plaintext"));
    assert_eq!(client.get("sasl.mechanism"), Some("PLAIN"));

    let options = BrokerOptions::new().credentials("you", "other");
    let config = Config::parse("kafka://me:secret@a", &options).unwrap();
    let client = config.client([], []).unwrap();
    assert_eq!(client.get("sasl.username"), Some("you"));
    assert_eq!(client.get("sasl.password"), Some("other"));
    assert!(refusal("kafka://me@a").contains("without a password"));
    // What was not percent-encoded ends up where parameters are.
    let refusal = refusal("kafka://me:12?secret=x@host");
    assert!(refusal.contains("no setting"), "{refusal}");
    assert!(!refusal.contains("secret"), "{refusal}");
}

#[test]
fn settings_come_from_the_url_and_are_checked() {
    let mut config = parse("kafka://a?session.timeout.ms=6000&client.id=a%20b").unwrap();
    config.set("linger.ms", "3").unwrap();
    let client = config
        .client(
            [("linger.ms", "0"), ("fetch.wait.max.ms", "5")],
            [("acks", "all")],
        )
        .unwrap();
    for (name, value) in [
        ("session.timeout.ms", "6000"),
        ("client.id", "a b"),
        ("linger.ms", "3"),
        ("fetch.wait.max.ms", "5"),
        ("acks", "all"),
        ("security.protocol", "plaintext"),
    ] {
        assert_eq!(client.get(name), Some(value), "{name}");
    }
    assert!(refusal("kafka://a?colour=blue").contains("CONFIGURATION.md"));
    assert!(refusal("kafka://a?linger.ms").contains("has no value"));
}

#[test]
fn what_promises_rest_on_is_refused_by_name() {
    for name in RESERVED {
        let error = parse("kafka://a").unwrap().set(name, "1").unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    // Each is a name that librdkafka knows.
    for name in RESERVED {
        let mut client = ClientConfig::new();
        client.set(name, "1");
        let known = client.create_native_config();
        let unknown = RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN;
        assert!(
            !matches!(known, Err(KafkaError::ClientConfig(found, ..)) if found == unknown),
            "{name}"
        );
    }
}

#[test]
fn values_are_in_no_error() {
    let mut config = parse("kafka://a").unwrap();
    let error = config.set("session.timeout.ms", "hunter2").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    for url in [
        "kafka://me:hunter2@a:x",
        "kafka://me:hunter2@a?x=y",
        "kafka://me:hunter2@a/x",
    ] {
        assert!(!refusal(url).contains("hunter2"), "{url}");
        assert!(!refusal(url).is_empty());
    }
}

#[cfg(not(feature = "kafka-tls"))]
#[test]
fn tls_needs_its_feature() {
    assert!(refusal("kafkas://a").contains("kafka-tls"));
}

#[cfg(feature = "kafka-tls")]
#[test]
fn tls_is_chosen_by_the_scheme() {
    let config = parse("kafkas://me:secret@a?sasl.mechanism=SCRAM-SHA-512").unwrap();
    let client = config.client([], []).unwrap();
    assert_eq!(client.get("security.protocol"), Some("sasl_ssl"));
    assert_eq!(client.get("sasl.mechanism"), Some("SCRAM-SHA-512"));
    let options = BrokerOptions::new().root_certificate("missing.pem");
    let config = Config::parse("kafkas://a", &options).unwrap();
    let error = config.client([], []).err().unwrap().to_string();
    assert!(error.contains("missing.pem"), "{error}");
}
