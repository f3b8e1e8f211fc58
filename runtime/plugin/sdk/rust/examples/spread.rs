//! spread has all logs catch up evenly by size, so that a log of few large segments cannot keep
//! the logs of many small ones waiting.
//!
//! The score of a segment falls with the bytes of its log that are to be copied before it: of two
//! logs, the one that has been given fewer bytes in this round comes next.
//!
//!     config: {}

#[path = "../tierd.rs"]
mod tierd;

use tierd::{Batch, Choices, Plugin, Setup};

struct Spread;

impl Plugin for Spread {
    fn configure(_: &Setup) -> Result<Self, String> {
        Ok(Spread)
    }

    fn select(&mut self, b: &Batch, out: &mut Choices) {
        let (mut log, mut before) = (-1, 0i64);
        for i in 0..b.len() {
            if b.log[i] != log {
                log = b.log[i];
                before = 0;
            }
            if b.copied[i] == 0 {
                out.score[i] = -before;
                before = before.saturating_add(b.bytes[i]);
            }
        }
    }
}

tierd::export!(Spread);
