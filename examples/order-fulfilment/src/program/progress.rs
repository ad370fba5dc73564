use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use order_fulfilment::placing::Placing;

use super::database::Progress;

/// Three bars on the terminal; nothing where there is none, or where a machine reads.
pub(crate) struct Bars {
    all: MultiProgress,
    placed: ProgressBar,
    finished: ProgressBar,
    handled: ProgressBar,
}

impl Bars {
    pub(crate) fn new(orders: usize, quiet: bool) -> Self {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let all = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{prefix:<16} {bar:40} {pos:>6}/{len}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &'static str, length: u64| {
            let bar = ProgressBar::new(length)
                .with_style(style.clone())
                .with_prefix(name);
            let bar = all.add(bar);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        };
        Self {
            placed: bar("orders placed", orders as u64),
            finished: bar("orders finished", 0),
            handled: bar("events handled", 0),
            all,
        }
    }

    /// Says something above the bars, or plainly on standard error where there are none.
    pub(crate) fn say(&self, text: &str) {
        if self.all.is_hidden() {
            eprintln!("{text}");
        } else {
            // A terminal that can't be written to will be noticed soon enough.
            let _ = self.all.println(text);
        }
    }

    pub(crate) fn show(&self, placing: &Placing, progress: Progress) {
        let show = |bar: &ProgressBar, position: i64, length: i64| {
            bar.set_length(length.unsigned_abs());
            bar.set_position(position.unsigned_abs());
        };
        self.placed
            .set_position(placing.placed() + placing.already_placed());
        show(&self.finished, progress.finished, progress.orders);
        show(&self.handled, progress.handled, progress.to_handle);
    }

    pub(crate) fn finish(&self) {
        for bar in [&self.placed, &self.finished, &self.handled] {
            bar.finish();
        }
    }
}
