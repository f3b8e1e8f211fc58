//! hottest has the hottest tables copied first.
//!
//! The heat of a table is how many bytes of its segments hold records of the last hour. Within a
//! table, and among tables of the same heat, the built-in order stands.
//!
//!     config: {window_seconds: 3600}

#[path = "../tierd.rs"]
mod tierd;

use tierd::{Batch, Choices, Json, Plugin, Setup};

struct Hottest {
    window: i64,
    /// Bytes by table; the last one is of tables that are not known.
    heat: Vec<i64>,
}

impl Plugin for Hottest {
    fn configure(setup: &Setup) -> Result<Self, String> {
        let mut seconds = 3600;
        // A misspelt key would leave the default in force.
        for (key, value) in setup.config.fields() {
            seconds = match (key.as_str(), value) {
                ("window_seconds", Json::Number(n)) if *n > 0 => *n,
                _ => return Err(format!("config has {key}; want {{window_seconds: NUMBER}}, at least 1")),
            };
        }
        Ok(Hottest {
            window: seconds.saturating_mul(1_000_000_000),
            heat: vec![0; setup.tables.len() + 1],
        })
    }

    fn select(&mut self, b: &Batch, out: &mut Choices) {
        let unknown = self.heat.len() - 1;
        let slot = |table: i64| if table < 0 { unknown } else { table as usize };
        let oldest = b.now - self.window;
        self.heat.fill(0);
        for i in 0..b.len() {
            if b.max_timestamp[i] > oldest {
                self.heat[slot(b.table[i])] += b.bytes[i];
            }
        }
        for (score, table) in out.score.iter_mut().zip(b.table) {
            *score = self.heat[slot(*table)];
        }
    }
}

tierd::export!(Hottest);
