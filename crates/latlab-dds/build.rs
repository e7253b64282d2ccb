//! Compiles the C sources of Cyclone DDS without cmake: the headers under `include/dds` are those that it would generate for
//! Linux.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of the run-time library that Linux needs, but for [`SOCKETS`].
const RUNTIME_POSIX: [&str; 13] = [
    "dynlib/posix/dynlib.c",
    "environ/posix/environ.c",
    "filesystem/posix/filesystem.c",
    "heap/posix/heap.c",
    "ifaddrs/posix/ifaddrs.c",
    "netstat/linux/netstat.c",
    "process/posix/process.c",
    "random/posix/random.c",
    "rusage/posix/rusage.c",
    "sockets/posix/gethostname.c",
    "sync/posix/sync.c",
    "threads/posix/threads.c",
    "time/posix/time.c",
];
/// The file whose calls of bind(2), close(2) and recvmsg(2) go through `src/shim.c`.
const SOCKETS: &str = "sockets/posix/socket.c";
/// Files of features that `include/dds/features.h` leaves out.
const LEFT_OUT: [&str; 15] = [
    "dds_dynamic_type.c",
    "dds_qos_provider.c",
    "dds_sysdef_parser.c",
    "dds_sysdef_validation.c",
    "ddsi_discovery_topic.c",
    "ddsi_dynamic_type.c",
    "ddsi_security_exchange.c",
    "ddsi_security_msg.c",
    "ddsi_typebuilder.c",
    "ddsi_typelib.c",
    "ddsi_typelookup.c",
    "ddsi_typewrap.c",
    "ddsi_xt_typeinfo.c",
    "ddsi_xt_typelookup.c",
    "ddsi_xt_typemap.c",
];

fn main() {
    for path in ["build.rs", "include", "src/shim.c"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let sources = cyclonedds_src::source_dir().join("src");
    let (runtime, core) = (sources.join("ddsrt/src"), sources.join("core"));
    let mut library = compiler(&sources);
    library
        .files(files_in(&runtime))
        .files(RUNTIME_POSIX.iter().map(|file| runtime.join(file)))
        .files(files_in(&core.join("ddsc/src")))
        .files(files_in(&core.join("ddsi/src")))
        .file(core.join("ddsi/defconfig.c"))
        .file(core.join("cdr/src/dds_cdrstream.c"))
        .file("src/shim.c");
    let sockets = compiler(&sources)
        .define("bind", "latlab_bind")
        .define("close", "latlab_close")
        .define("recvmsg", "latlab_recvmsg")
        .file(runtime.join(SOCKETS))
        .compile_intermediates();
    library.objects(sockets).compile("latlab_ddsc");
}

/// The compiler of every file. Optimised in tests too, since the speed of the library is measured there.
fn compiler(sources: &Path) -> cc::Build {
    let mut compiler = cc::Build::new();
    compiler.include("include").define("NDEBUG", None).opt_level(2).debug(false).warnings(false);
    let headers = [
        "ddsrt/include",
        "ddsrt/src",
        "core/ddsc/include",
        "core/ddsc/src",
        "core/ddsi/include",
        "core/ddsi/src",
        "core/cdr/include",
        "security/api/include",
        "security/core/include",
    ];
    compiler.includes(headers.map(|path| sources.join(path)));
    compiler
}

/// The C files in `directory`, without those that are left out.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_built = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".c") && !LEFT_OUT.contains(&name)
    };
    let mut files: Vec<_> = paths.filter(is_built).collect();
    files.sort();
    files
}
