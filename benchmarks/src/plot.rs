use std::path::Path;

use anyhow::Result;

use crate::line::Line;

/// Draws the ratios against their goals, and the curves.
pub(crate) fn draw(_lines: &[Line], _file: &Path) -> Result<()> {
    anyhow::bail!("not drawn yet")
}
