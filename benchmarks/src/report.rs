use anyhow::Result;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::line::Line;

/// Prints an object a line.
pub(crate) fn print_json(lines: &[Line]) -> Result<()> {
    for line in lines {
        println!("{}", serde_json::to_string(line)?);
    }
    Ok(())
}

/// Prints a table.
pub(crate) fn print_table(lines: &[Line]) {
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "what", "unit", "ours", "theirs", "ratio", "spread", "goal", "met",
        ]);
    for line in lines {
        table.add_row([
            line.name.clone(),
            line.unit.to_string(),
            figure(line.ours),
            figure(line.theirs),
            format!("{:.2}", line.ratio),
            format!("{:.2} to {:.2}", line.spread.0, line.spread.1),
            line.goal.to_string(),
            if line.met { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    for index in 2..6 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    let met = lines.iter().filter(|line| line.met).count();
    println!("{met} of {} goals met", lines.len());
}

/// Three digits that matter, more where a number is large.
fn figure(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
