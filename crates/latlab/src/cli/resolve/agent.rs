use super::RequestError;
use crate::cli::args::AgentArgs;

/// The agent speaks on standard input and output, and whoever starts it says so.
pub fn agent(typed: AgentArgs) -> Result<(), RequestError> {
    if typed.stdio {
        return Ok(());
    }
    Err(RequestError::Alone {
        option: "agent",
        needed: "--stdio",
        cause: "it opens no port and speaks on standard input and output alone",
        hint: "`latlab ping ssh:HOST` starts it where it is needed; a reflector for others is `latlab serve`",
    })
}
