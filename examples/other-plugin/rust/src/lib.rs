//! A quota: so many requests a minute pass, counted once for all workers of the gateway.
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel, Status};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(Quota { limit: 0 }));
}}

/// The shared record: the minute as 8 bytes, then the requests that passed in it as 8 bytes.
const RECORD: &str = "quota";

struct Quota {
    limit: u64,
}

impl Context for Quota {}

impl RootContext for Quota {
    fn on_configure(&mut self, _: usize) -> bool {
        let text = self.get_plugin_configuration().unwrap_or_default();
        let Some(limit) = std::str::from_utf8(&text).ok().and_then(|t| t.trim().parse().ok()) else {
            log::error!("the configuration is the number of requests a minute");
            return false;
        };
        self.limit = limit;
        // A record must be there before workers meet on it: of two that create one, the second would win.
        self.get_shared_data(RECORD).0.is_some() || self.set_shared_data(RECORD, Some(&[0; 16]), None).is_ok()
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Request { limit: self.limit }))
    }
}

struct Request {
    limit: u64,
}

impl Context for Request {}

impl Request {
    /// Counts this request, unless the minute's quota is used up.
    fn take(&self) -> bool {
        let since = self.get_current_time().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let minute = since.as_secs() / 60;
        loop {
            let (Some(old), cas) = self.get_shared_data(RECORD) else { return true };
            let number = |i| u64::from_le_bytes(old[i..i + 8].try_into().unwrap());
            let used = if number(0) == minute { number(8) } else { 0 };
            if used >= self.limit {
                return false;
            }
            let new = [minute.to_le_bytes(), (used + 1).to_le_bytes()].concat();
            match self.set_shared_data(RECORD, Some(&new), cas) {
                Err(Status::CasMismatch) => continue, // another worker was faster
                _ => return true,
            }
        }
    }
}

impl HttpContext for Request {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        if self.take() {
            return Action::Continue;
        }
        self.send_http_response(429, vec![("retry-after", "60")], Some(b"come back later\n"));
        Action::Pause
    }
}
