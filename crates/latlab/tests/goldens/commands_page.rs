//! docs/commands.md: its table is made from the definition of the command line, what follows it is written by hand.

use std::fs;

/// What the page has up to its first heading of the second level.
fn made() -> String {
    let mut definition = latlab::cli::definition();
    definition.build();
    let mut commands: Vec<_> = definition.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    commands.sort_by_key(|command| command.get_display_order());
    let rows: String = commands.into_iter().map(row).collect();
    format!("# Commands\n\n| command | what it does |\n| --- | --- |\n{rows}\n")
}

/// The command with a link to its page, if there is one.
fn row(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string().replace(" [OPTIONS]", "");
    let usages =
        usage.trim_start_matches("Usage: ").lines().map(|line| format!("`{}`", line.trim().replace('|', "\\|")));
    let guide = format!("{}.md", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = if page(&guide).exists() { format!("[{about}]({guide})") } else { about };
    format!("| {} | {about} |\n", usages.collect::<Vec<_>>().join(" "))
}

fn page(name: &str) -> std::path::PathBuf {
    crate::testdata().join("../docs").join(name)
}

#[test]
fn the_table_of_commands_is_as_the_program_has_it() {
    let text = fs::read_to_string(page("commands.md")).expect("the page");
    let (_, written) = text.split_once("\n## ").expect("a heading");
    let expected = format!("{}## {written}", made());
    if std::env::var_os("LATLAB_UPDATE_GOLDENS").is_some() {
        fs::write(page("commands.md"), expected).expect("written");
    } else {
        assert_eq!(text, expected, "LATLAB_UPDATE_GOLDENS=1 cargo test -p latlab --test goldens");
    }
}
