//! The Rust side of tierd's plugin ABI v1, in one file and without other crates.
//!
//! A plugin is a type that implements [`Plugin`], and one line that exports it:
//!
//! ```ignore
//! mod tierd;
//! tierd::export!(MyPlugin);
//! ```
//!
//! Build it with
//!
//! ```sh
//! rustc --edition 2021 --target wasm32-unknown-unknown --crate-type cdylib \
//!     -C opt-level=2 -C panic=abort -C strip=debuginfo plugin.rs -o plugin.wasm
//! ```
#![allow(dead_code)]

/// What a plugin asks for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    None = 0,
    /// Do not copy it yet; tierd bounds for how long.
    Hold = 1,
    /// Do not delete it locally.
    Keep = 2,
}

/// The bits of [`Batch::tiers`].
pub const LOCAL: u8 = 1;
pub const REMOTE: u8 = 2;

/// The values of [`Batch::tier_state`]. Take any other value for `STATE_UNKNOWN`.
pub const STATE_UNKNOWN: u8 = 0;
pub const STATE_ENABLED: u8 = 1;
pub const STATE_DISABLING: u8 = 2;
pub const STATE_DISABLED: u8 = 3;

/// The candidates to judge. Row `i` of every column is the i-th segment; the segments of a log
/// stand together and ascend by offset. Times and ages are in nanoseconds.
pub struct Batch<'a> {
    /// Since the Unix epoch.
    pub now: i64,
    /// How many logs there are.
    pub logs: usize,
    pub base: &'a [i64],
    /// One past the last offset.
    pub next: &'a [i64],
    pub bytes: &'a [i64],
    /// Since the Unix epoch; 0 if there is none usable.
    pub max_timestamp: &'a [i64],
    /// 0 if it is not known.
    pub age: &'a [i64],
    /// Of the segment's log, on local disk.
    pub local_bytes: &'a [i64],
    /// Bytes of the disk that the log lies on.
    pub disk_used: &'a [i64],
    pub disk_free: &'a [i64],
    /// Index in the tables of the setup; -1 if it is not there.
    pub table: &'a [i64],
    /// 0 to logs - 1.
    pub log: &'a [i64],
    pub tiers: &'a [u8],
    /// 1 if every offset was copied.
    pub copied: &'a [u8],
    /// 1 if its copy was verified.
    pub verified: &'a [u8],
    pub tier_state: &'a [u8],
}

impl Batch<'_> {
    /// The number of segments.
    pub fn len(&self) -> usize {
        self.base.len()
    }
}

/// The answer. All scores are 0 and all actions `None` to begin with.
pub struct Choices<'a> {
    /// What should be copied first has the highest.
    pub score: &'a mut [i64],
    pub action: &'a mut [Action],
}

/// One table of the node.
pub struct Table {
    pub name: String,
    pub labels: Vec<(String, String)>,
}

/// What a plugin is given once, before the first batch.
pub struct Setup {
    /// The plugin's configured name.
    pub plugin: String,
    pub node: String,
    /// What tierd.yaml says under `config`.
    pub config: Json,
    /// [`Batch::table`] holds indices of it.
    pub tables: Vec<Table>,
}

/// What an author implements.
pub trait Plugin: Sized {
    /// Makes the plugin, once. An error refuses the configuration.
    fn configure(setup: &Setup) -> Result<Self, String>;
    /// Answers a batch.
    fn select(&mut self, batch: &Batch, choices: &mut Choices);
}

/// Writes a line to tierd's log. Its length and rate are bounded.
pub fn log(text: &str) {
    #[cfg(target_arch = "wasm32")]
    unsafe {
        host_log(text.as_ptr(), text.len())
    }
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{}", text)
}

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "tierd")]
extern "C" {
    #[link_name = "log"]
    fn host_log(text: *const u8, len: usize);
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// Whole numbers that fit are kept exactly; others are rounded towards zero.
    Number(i64),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of a key, `Null` if it is not there.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(fields) => {
                fields.iter().find(|(k, _)| k == key).map(|(_, v)| v).unwrap_or(&Json::Null)
            }
            _ => &Json::Null,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Json::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(s) => Some(s),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    pub fn fields(&self) -> &[(String, Json)] {
        match self {
            Json::Object(fields) => fields,
            _ => &[],
        }
    }

    /// Reads a text that holds one value.
    pub fn parse(text: &[u8]) -> Result<Json, String> {
        let mut p = Parser { text, at: 0 };
        let v = p.value(0)?;
        p.space();
        if p.at < text.len() {
            return Err(p.error("the end"));
        }
        Ok(v)
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

/// How deep JSON may nest.
const MAX_DEPTH: usize = 64;

impl Parser<'_> {
    fn error(&self, want: &str) -> String {
        format!("JSON: want {} at byte {}", want, self.at)
    }

    fn peek(&self) -> u8 {
        *self.text.get(self.at).unwrap_or(&0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn eat(&mut self, text: &str) -> bool {
        let yes = self.text[self.at..].starts_with(text.as_bytes());
        if yes {
            self.at += text.len();
        }
        yes
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err(self.error("less nesting"));
        }
        self.space();
        match self.peek() {
            b'n' if self.eat("null") => Ok(Json::Null),
            b't' if self.eat("true") => Ok(Json::Bool(true)),
            b'f' if self.eat("false") => Ok(Json::Bool(false)),
            b'"' => Ok(Json::String(self.string()?)),
            b'[' => self.list(b']', |p| p.value(depth + 1)).map(Json::Array),
            b'{' => self
                .list(b'}', |p| {
                    p.space();
                    let key = p.string()?;
                    p.space();
                    if !p.eat(":") {
                        return Err(p.error("a colon"));
                    }
                    Ok((key, p.value(depth + 1)?))
                })
                .map(Json::Object),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.error("a value")),
        }
    }

    fn list<T>(
        &mut self,
        close: u8,
        mut each: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut out = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == close {
            self.at += 1;
            return Ok(out);
        }
        loop {
            out.push(each(self)?);
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                c if c == close => {
                    self.at += 1;
                    return Ok(out);
                }
                _ => return Err(self.error("a comma or the end of the list")),
            }
        }
    }

    fn number(&mut self) -> Result<Json, String> {
        let from = self.at;
        while matches!(self.peek(), b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[from..self.at]).unwrap_or("");
        text.parse::<i64>()
            .or_else(|_| text.parse::<f64>().map(|f| f as i64))
            .map(Json::Number)
            .map_err(|_| self.error("a number"))
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.eat("\"") {
            return Err(self.error("a string"));
        }
        let mut out = Vec::new();
        loop {
            let c = self.peek();
            self.at += 1;
            match c {
                b'"' => return String::from_utf8(out).map_err(|_| self.error("UTF-8")),
                b'\\' => {
                    let decoded = self.escape()?;
                    out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0 if self.at > self.text.len() => return Err(self.error("the end of a string")),
                _ => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let c = self.peek();
        self.at += 1;
        Ok(match c {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => c as char,
            b'u' => {
                let mut code = self.hex()?;
                if (0xd800..0xdc00).contains(&code) && self.eat("\\u") {
                    let low = self.hex()?;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                }
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.error("an escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or(b"");
        self.at += 4;
        std::str::from_utf8(digits)
            .ok()
            .and_then(|s| u32::from_str_radix(s, 16).ok())
            .ok_or_else(|| self.error("four hexadecimal digits"))
    }
}

/// What [`export!`] calls. Nothing else should.
pub mod abi {
    use super::*;

    const MAGIC: u32 = 0x3144_5254;
    const WIDE: usize = 10;
    const COLUMNS: usize = 14;

    /// The plugin and the memory of its exports.
    pub struct State<P> {
        plugin: Option<P>,
        input: Vec<u64>,
        /// n scores and then n actions; of words, so that the scores are aligned.
        answer: Vec<u64>,
    }

    impl<P: Plugin> State<P> {
        pub const fn new() -> Self {
            State { plugin: None, input: Vec::new(), answer: Vec::new() }
        }

        /// Gives n bytes for the host to write to.
        pub fn alloc(&mut self, n: usize) -> *mut u8 {
            self.input.resize(n / 8 + 1, 0);
            self.input.as_mut_ptr() as *mut u8
        }

        pub fn configure(&mut self, text: &[u8]) -> i32 {
            std::panic::set_hook(Box::new(|info| log(&info.to_string())));
            match setup(text).and_then(|s| P::configure(&s)) {
                Ok(p) => {
                    self.plugin = Some(p);
                    0
                }
                Err(e) => {
                    log(&e);
                    1
                }
            }
        }

        /// Answers the batch in text: where the answer is in the upper half, its bytes in the lower.
        pub fn select(&mut self, text: &[u8]) -> u64 {
            let u32_at = |at: usize| {
                u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]])
            };
            assert!(u32_at(0) == MAGIC, "the batch does not begin with TRD1");
            let n = u32_at(12) as usize;
            let mut wide: [Option<&[i64]>; WIDE + 1] = [None; WIDE + 1];
            let mut narrow: [Option<&[u8]>; COLUMNS + 1] = [None; COLUMNS + 1];
            let directory = u32_at(4) as usize;
            for k in 0..u32_at(8) as usize {
                let entry = directory + 8 * k;
                let id = text[entry] as usize | (text[entry + 1] as usize) << 8;
                let at = u32_at(entry + 4) as usize;
                // Columns with other ids are of a newer tierd and are passed over.
                match text[entry + 2] {
                    1 if id <= WIDE => wide[id] = Some(as_numbers(&text[at..at + 8 * n])),
                    2 if id > WIDE && id <= COLUMNS => narrow[id] = Some(&text[at..at + n]),
                    _ => {}
                }
            }
            // Columns that an older tierd does not send are zeros.
            let mut zeros = Vec::new();
            if wide[1..].contains(&None) || narrow[WIDE + 1..].contains(&None) {
                zeros.resize(n, 0i64);
            }
            let wide = wide.map(|c| c.unwrap_or(&zeros));
            let narrow = narrow.map(|c| c.unwrap_or_else(|| as_bytes(&zeros)));
            let batch = Batch {
                now: i64::from(u32_at(36) as i32) << 32 | i64::from(u32_at(32)),
                logs: u32_at(24) as usize,
                base: wide[1],
                next: wide[2],
                bytes: wide[3],
                max_timestamp: wide[4],
                age: wide[5],
                local_bytes: wide[6],
                disk_used: wide[7],
                disk_free: wide[8],
                table: wide[9],
                log: wide[10],
                tiers: narrow[11],
                copied: narrow[12],
                verified: narrow[13],
                tier_state: narrow[14],
            };
            self.answer.clear();
            self.answer.resize(n + n / 8 + 1, 0);
            let out = self.answer.as_mut_ptr();
            // The answer has room for n scores and n actions, all zero, which are 0 and None.
            let mut choices = unsafe {
                Choices {
                    score: std::slice::from_raw_parts_mut(out as *mut i64, n),
                    action: std::slice::from_raw_parts_mut(out.add(n) as *mut Action, n),
                }
            };
            self.plugin.as_mut().expect("configured").select(&batch, &mut choices);
            (out as usize as u64) << 32 | (9 * n) as u64
        }
    }

    /// As many zero bytes as there are zero numbers.
    fn as_bytes(numbers: &[i64]) -> &[u8] {
        unsafe { std::slice::from_raw_parts(numbers.as_ptr() as *const u8, numbers.len()) }
    }

    /// A column, which the host has aligned.
    fn as_numbers(bytes: &[u8]) -> &[i64] {
        let (head, numbers, _) = unsafe { bytes.align_to::<i64>() };
        assert!(head.is_empty(), "a column is not aligned");
        numbers
    }

    fn setup(text: &[u8]) -> Result<Setup, String> {
        let all = Json::parse(text)?;
        let text_of = |v: &Json| v.as_str().unwrap_or("").to_string();
        let tables = all.get("tables").items().iter().map(|t| Table {
            name: text_of(t.get("name")),
            labels: t.get("labels").fields().iter().map(|(k, v)| (k.clone(), text_of(v))).collect(),
        });
        Ok(Setup {
            plugin: text_of(all.get("plugin")),
            node: text_of(all.get("node")),
            config: all.get("config").clone(),
            tables: tables.collect(),
        })
    }
}

/// Exports a type that implements [`Plugin`].
macro_rules! export {
    ($type:ty) => {
        static mut TIERD_STATE: $crate::tierd::abi::State<$type> =
            $crate::tierd::abi::State::new();

        // A module of this ABI has one thread, and the host makes one call at a time.
        fn tierd_state() -> &'static mut $crate::tierd::abi::State<$type> {
            unsafe { &mut *std::ptr::addr_of_mut!(TIERD_STATE) }
        }

        #[no_mangle]
        pub extern "C" fn tierd_abi_v1() {}

        #[no_mangle]
        pub extern "C" fn tierd_alloc(n: usize) -> *mut u8 {
            tierd_state().alloc(n)
        }

        #[no_mangle]
        pub unsafe extern "C" fn tierd_configure(p: *const u8, n: usize) -> i32 {
            let text = std::slice::from_raw_parts(p, n).to_vec();
            tierd_state().configure(&text)
        }

        #[no_mangle]
        pub unsafe extern "C" fn tierd_select(p: *const u8, _n: u32) -> u64 {
            let size = *(p.add(16) as *const u32) as usize;
            tierd_state().select(std::slice::from_raw_parts(p, size))
        }
    };
}

pub(crate) use export;
