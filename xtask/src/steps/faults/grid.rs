use comfy_table::{Table, presets};

use super::lines::End;
use super::view::NotTried;

/// Faults by brokers: how each run on a real broker ended; nothing if there was none.
pub(super) fn of_brokers(ends: &[Result<End, NotTried>]) -> Option<Table> {
    let cells: Vec<_> = ends
        .iter()
        .map(|end| match end {
            Ok(end) => (&end.cell, how(end)),
            Err(end) => (&end.cell, "not exercised".to_owned()),
        })
        .filter(|(cell, _)| cell.is_on_real_broker())
        .collect();
    let (mut faults, mut brokers) = (Vec::new(), Vec::new());
    for (cell, _) in &cells {
        if !faults.contains(&cell.fault.as_str()) {
            faults.push(&cell.fault);
        }
        if !brokers.contains(&cell.broker.as_str()) {
            brokers.push(&cell.broker);
        }
    }
    if cells.is_empty() {
        return None;
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([&["fault"], brokers.as_slice()].concat());
    for fault in faults {
        let of_broker = |broker: &&str| {
            let found = cells
                .iter()
                .find(|(cell, _)| cell.fault == fault && cell.broker == *broker);
            found.map_or_else(|| "-".to_owned(), |(_, how)| how.clone())
        };
        let row = brokers.iter().map(of_broker);
        table.add_row([fault.to_owned()].into_iter().chain(row));
    }
    Some(table)
}

fn how(end: &End) -> String {
    let seconds = end.millis as f64 / 1000.0;
    match end.clean {
        true => format!("clean, {seconds:.1} s"),
        false => "BROKEN".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Line;
    use super::*;

    fn end(fault: &str, broker: &str, clean: bool) -> Result<End, NotTried> {
        let line = format!(
            r#"{{"line":"end","fault":"{fault}","database":"postgres","broker":"{broker}",
            "seed":7,"clean":{clean},"messages":10,"lost":0,"duplicated":0,"out_of_order":0,
            "torn":0,"strikes":1,"repeats":0,"problems":[],"remark":"","millis":1500,
            "peak_memory":20480}}"#
        );
        match Line::read(&line) {
            Some(Line::End(end)) => Ok(end),
            _ => panic!("a line of an end"),
        }
    }

    #[test]
    fn each_broker_has_a_column_and_the_harness_none() {
        assert!(of_brokers(&[end("poison", "harness", true)]).is_none());
        let ends = [
            end("poison", "harness", true),
            end("poison", "nats", true),
            end("shards-move", "nats", false),
            end("poison", "kafka", true),
        ];
        let grid = of_brokers(&ends).unwrap().to_string();
        let rows: Vec<_> = grid.lines().collect();
        assert_eq!(rows.len(), 4, "{grid}");
        assert!(
            rows[0].contains("nats") && rows[0].contains("kafka"),
            "{grid}"
        );
        assert!(!grid.contains("harness"), "{grid}");
        assert!(rows[2].matches("clean, 1.5 s").count() == 2, "{grid}");
        assert!(
            rows[3].contains("BROKEN") && rows[3].contains('-'),
            "{grid}"
        );
    }
}
