use super::*;

fn placeholder(path: &str) -> Part {
    Part::Placeholder(path.split('.').map(str::to_owned).collect())
}

fn literal(text: &str) -> Part {
    Part::Literal(text.to_owned())
}

fn parts(text: &str) -> Vec<Part> {
    let (template, errors) = Template::parse(text, "{id}");
    assert_eq!(errors, Vec::<String>::new());
    template.parts
}

fn error(text: &str) -> String {
    let (_, errors) = Template::parse(text, "{id}");
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.concat()
}

#[test]
fn text_and_placeholders_alternate() {
    assert_eq!(
        parts("{order_id}:OrderPaid:v1"),
        [placeholder("order_id"), literal(":OrderPaid:v1")]
    );
    assert_eq!(
        parts("{event.address.city}/{0}"),
        [
            placeholder("event.address.city"),
            literal("/"),
            placeholder("0")
        ]
    );
    assert_eq!(parts("{type}"), [placeholder("type")]);
}

#[test]
fn doubled_braces_are_text() {
    assert_eq!(
        parts("{{{id}}}:{{}}"),
        [literal("{"), placeholder("id"), literal("}:{}")]
    );
}

#[test]
fn braces_must_pair_up() {
    assert!(error("{order_id:paid").contains("before `order_id:paid` is never closed"));
    assert!(error("order_id}:paid").contains("without its `{`"));
    assert!(error("a:{").contains("never closed"));
    assert!(error("{a:{b}").contains("before `a:` is never closed"));
}

#[test]
fn placeholders_are_paths_of_fields() {
    assert!(error("{}").contains("empty placeholder"));
    assert!(error("{ id }").contains("is no placeholder"));
    assert!(error("{id:>5}").contains("is no placeholder"));
    assert!(error("{a..b}").contains("is no placeholder"));
    assert!(error("{a()}").contains("is no placeholder"));
}

#[test]
fn a_key_must_vary() {
    assert!(error("order-paid").contains("same for every message"));
    assert!(error("{{id}}").contains("same for every message"));
    assert!(error("").contains("can't be empty"));
    assert!(error("  ").contains("can't be empty"));
}

#[test]
fn placeholders_are_kept_apart() {
    for unseparated in ["{a}{b}", "{a}-{b}", "{a}_v1.2~{b}", "{a}%3A{b}"] {
        assert!(
            error(unseparated).contains("separate them with `:`"),
            "{unseparated}"
        );
    }
    for separated in ["{a}:{b}", "{a}/x/{b}", "{a} {b}", "{a}-é-{b}", "{a}{{{b}"] {
        assert!(!parts(separated).is_empty());
    }
}

#[test]
fn everything_wrong_is_said() {
    let (_, errors) = Template::parse("{}:{x y}:}", "{id}");
    assert_eq!(errors.len(), 3);
}

#[test]
fn control_characters_are_refused() {
    assert!(error("{id}\n").contains("control characters"));
}
