#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringbolt::tools {

// One function per subcommand; each lies in the file of its name. All return an exit code of failure.h, print to
// stdout, and throw UsageError or base::Error when refused. An empty `cluster` means: $RINGBOLT_CLUSTER, else the
// only one that is up. A node is given by number or name; "local" is the default device, outside any cluster.

struct UpOptions {
  std::string spec;   ///< a topology, or the path of a cluster file
  std::string hosts;  ///< instead of it: hosts separated by commas, or the path of a cluster file
  std::string name;   ///< empty: the file's, else made from the topology
  bool is_netns = false;
  bool has_management = true;  ///< of netns: a network beside the cables, unless the file says that there is none
  uint32_t mtu = 0;            ///< of netns; 0: the file's, else the default
  std::string rate;            ///< of netns, for every cable, "2.5Gbit"; empty: the file's, else none
  std::string like;            ///< whose limits the devices take on; empty: the file's, else none
  std::string prefix;         ///< of hosts: where Ringbolt is installed there; empty: the file's, else where it is here
  std::string over = "auto";  ///< of hosts: what carries the cables, "network", "streams", or what is there
  bool is_applied = false;    ///< of hosts: makes Thunderbolt streams where there are none
  bool has_overlay = false;   ///< starts an agent per node, and gives programs ringbolt0
  bool is_quiet = false;      ///< says nothing of what it made
};
int up(const UpOptions& options);

struct DownOptions {
  std::string cluster;
  bool is_forced = false;  ///< also while programs run
  bool is_quiet = false;   ///< says nothing of what it removed
};
int down(const DownOptions& options);

struct RebootOptions {
  std::string cluster;
  std::string node;
  bool is_forced = false;  ///< also while programs hold objects: they are killed
};
int reboot(const RebootOptions& options);

struct ListOptions {
  std::string cluster;
  bool is_json = false;
  bool is_all = false;  ///< also where there are more cables than anybody reads
};
int status(const ListOptions& options);
int devices(const ListOptions& options);

struct RunOptions {
  std::string cluster;
  std::vector<std::string> nodes;    ///< empty: all
  bool is_tagged = false;            ///< prefix output even when there is one node
  bool is_untagged = false;          ///< never prefix
  bool is_explained = false;         ///< RINGBOLT_EXPLAIN
  std::string sanitized;             ///< RINGBOLT_SANITIZE; empty: as the environment says
  std::string shuffled;              ///< RINGBOLT_SHUFFLE, or several seeds; empty: as the environment says
  double limit_s = 60;               ///< of a run that is shuffled
  std::vector<std::string> reports;  ///< "sarif:FILE", of what the sanitizer finds
  std::string recorded;              ///< RINGBOLT_RECORD; empty: as the environment says
  std::string html_path;             ///< of what was found and explained, with timelines; empty: none; "-": stdout
  bool keeps_going = false;          ///< a failure does not end the other nodes
  std::optional<double> timeout_s;
  bool is_remote = false;       ///< hidden: on a host, for the machine that commands
  bool shows_progress = false;  ///< of ranks of ours
  UpOptions emulated;           ///< with a spec: on a cluster of its own, made before and removed after, whatever comes
  std::vector<std::string> faults;  ///< of that cluster, from the beginning
  std::string again_words;          ///< inside such a cluster: the options that make it once more; empty: it stays
  std::vector<std::string> command;
};
int run(const RunOptions& options);
/// run() on a cluster of its own.
int run_emulated(const RunOptions& options);
/// The process whose run_emulated() has made the cluster of that name, and removes it; none: no such cluster is called
/// so. Thread-safe.
std::optional<pid_t> maker_of(const std::string& name);

struct ExecOptions {
  std::string cluster;
  std::string node;
  bool is_watched = false;  ///< hidden: on a host; the program ends when nobody reads its output any more
  std::vector<std::string> command;
};
/// Does not return when the command was started.
int exec(const ExecOptions& options);

struct EnvOptions {
  std::string cluster;
  std::string node;
  bool is_json = false;
};
int env(const EnvOptions& options);

struct HostfileOptions {
  std::string cluster;
  std::string format;        ///< mlx, mlx-v1, mlx-ring, jaccl; empty: mlx, or what the checked file is
  std::string backend;       ///< jaccl, jaccl-ring, ring; empty: jaccl, or what the checked file says
  std::string path = "-";    ///< of what is written; "-": stdout
  std::string checked_path;  ///< instead of writing one, this one is judged
  bool is_json = false;
};
int hostfile(const HostfileOptions& options);

struct CableOptions {
  std::string cluster;
  std::string cable;  ///< A-B or A:port-B:port
};
int cut(const CableOptions& options);
int heal(const CableOptions& options);

struct FaultOptions {
  std::string cluster;
  bool is_json = false;                ///< of list
  std::vector<std::string> words;      ///< of add: one fault
  std::string file;                    ///< of add, instead: some
  std::vector<uint32_t> numbers = {};  ///< of clear: as list shows them; none: all
};
int fault_add(const FaultOptions& options);
int fault_list(const FaultOptions& options);
int fault_clear(const FaultOptions& options);

struct MetricsOptions {
  std::string cluster;  ///< empty: all of them, and the ports outside
  std::string listen;   ///< empty: print once; else "ADDRESS:PORT"
  bool is_json = false;
};
int metrics(const MetricsOptions& options);

/// docs/trace.md says what each is.
struct TraceOptions {
  std::string cluster;
  std::vector<std::string> words;  ///< nodes, "local", files and folders; none: all of the cluster
  std::string queue_pair;          ///< a number; empty: all
  std::optional<uint32_t> pid;
  std::optional<double> since_s;
  uint32_t last = 50;       ///< events of a connection; 0: all
  std::string chrome_path;  ///< empty: none; "-": stdout
  std::string html_path;    ///< likewise
  bool is_json = false;
};
int trace_run(const TraceOptions& options);

struct DecodeOptions {
  std::string path;  ///< a capture, frames as lines of hexadecimal digits, or the bytes of a stream
};
int decode(const DecodeOptions& options);

/// How much `matrix` measures one cable, or one pair of nodes.
struct Effort {
  double timeout_s = 20;  ///< then it has failed
  double phase_s = 0.5;   ///< for one figure; then what was measured so far counts
  uint32_t size_bytes = 1U << 20U;
  uint32_t messages = 64;  ///< at most
  uint32_t rounds = 2000;  ///< at most
};
struct MatrixOptions : Effort {
  std::string cluster;
  bool is_json = false;
  std::string html_path;             ///< empty: none; "-": stdout
  std::vector<std::string> fail_if;  ///< thresholds.h
  bool is_neighbours = false;        ///< leaves out pairs that no cable joins
};
int matrix(const MatrixOptions& options);

struct MapOptions {
  std::string cluster;
  bool is_json = false;
  bool is_once = false;
  double interval_s = 1;  ///< that rates are of, and between two pictures
};
int map_run(const MapOptions& options);

/// Hidden: what a process is told that is one of two ends, which a command of ours has started.
struct EndOptions {
  std::string end;              ///< "client" or "server"; empty: it is no such process
  std::string peer;             ///< what it calls the other
  int channel_fd = -1;          ///< its stream to the other; -1: input and output, and the result is for stderr
  bool tells_progress = false;  ///< to who started it
};

/// What `perf` and `verify` both take: where their two ends meet, for how long, and over what. Letters as perftest has
/// them. Unset: the command's default.
struct PairOptions : EndOptions {
  std::string host;   ///< empty: be the server, unless nodes are given
  std::string nodes;  ///< "A,B": both ends, on nodes of a cluster that have a cable
  std::string cluster;
  std::string device;
  std::string verbs = "ours";
  std::optional<uint64_t> size_bytes;
  std::optional<uint64_t> iterations;
  std::optional<double> duration_s;
  std::optional<double> line_rate_gbps;
  std::optional<int> gid_index;
  uint32_t mtu_bytes = 0;
  uint32_t tx_depth = 0;
  uint32_t rx_depth = 0;
  uint32_t timeout_code = 14;
  uint32_t retry_count = 7;
  uint32_t device_port = 1;
  uint16_t tcp_port = 18515;
  double timeout_s = 30;  ///< to meet; of perf also the most for one wait
  bool is_bidirectional = false;
  bool is_json = false;
  std::vector<std::string> words;  ///< of the command line, for the ends that it starts
};

/// Of commands that run themselves as ranks on all nodes. Hidden.
struct RankOptions {
  bool is_rank = false;             ///< one rank of the group, whatever the environment says
  bool tells_progress = false;      ///< rank 0, to who started it
  std::optional<uint32_t> n_ranks;  ///< of the group, or it is the wrong one
  std::vector<std::string> words;   ///< of the command line, for the ranks that it starts
};

/// docs/nccl.md says what each is.
struct NcclOptions : RankOptions {
  std::string cluster;
  std::string plugin;   ///< empty: the one installed with this command
  std::string emulate;  ///< of test: makes a cluster of this topology for it
  std::string like;     ///< profile of that
  uint64_t least = 8;
  uint64_t most = uint64_t{4} << 20U;
  uint64_t factor = 512;
  bool is_json = false;
};
int nccl_plan(const NcclOptions& options);
int nccl_test(const NcclOptions& options);

/// docs/perf.md says what each is.
struct PerfOptions : PairOptions {
  std::string operation;  ///< "send", "write", "read", "atomic"
  std::string connection = "RC";
  std::string atomic_type = "fetch_add";
  std::string check;                 ///< empty: "full" for bandwidth, "sample" for latency
  std::string html_path;             ///< empty: none; "-": stdout
  std::vector<std::string> fail_if;  ///< thresholds.h
  std::optional<int> inline_bytes;
  uint32_t queue_pairs = 1;
  uint32_t signal_every = 0;
  uint32_t post_list = 1;
  bool has_latency = false;
  bool reports_both = false;
  bool is_all_sizes = false;
  bool has_events = false;
  bool has_histogram = false;
  bool is_in_gbits = false;
  bool needs_counters = false;
};
int perf_run(const PerfOptions& options);

/// docs/verify.md says what each is. Unset: as fits the devices.
struct VerifyOptions : PairOptions {
  std::string mode = "stream";  ///< or "write", "read", "atomic", "churn", "soak"; another word is the host
  std::string connection;       ///< empty: RC, or what both devices have
  std::string order;            ///< empty: strict, but any for UD
  std::optional<uint64_t> least_bytes;
  std::optional<uint64_t> most_bytes;
  std::optional<double> hours;
  std::optional<double> progress_s;
  std::optional<uint64_t> seed;
  double loss_percent = 0;
  double stall_s = 5;
  uint32_t queue_pairs = 0;
};
int verify_run(const VerifyOptions& options);

/// docs/plan.md says what each is. Either a file or a number of nodes and of ports.
struct PlanOptions {
  std::string file;  ///< a topology or the path of a cluster file to judge
  std::optional<uint32_t> nodes;
  std::optional<uint32_t> ports;
  std::string shape;             ///< empty: the best known
  std::string like;              ///< whose names ports get
  std::string routing = "auto";  ///< or shortest, hop-classes, dateline, up-down
  std::optional<uint32_t> speed_gbps;
  double alpha_us = 10;
  uint32_t prefix_length = 30;
  std::vector<std::string> relays;  ///< nodes that only relay
  std::string svg_path;             ///< empty: none; "-": stdout
  std::string cluster_path;         ///< likewise: a cluster file
  bool is_json = false;
  bool is_dot = false;
  bool explains = false;
  bool is_checked = false;
};
int plan_run(const PlanOptions& options);

/// docs/check.md says what each is.
struct CheckOptions : RankOptions {
  std::string cluster;
  std::string scale = "ci";
  std::string algorithm;                 ///< empty: the fastest; of the matrix: each
  std::string verbs;                     ///< empty: as the environment says
  std::vector<std::string> collectives;  ///< of the matrix; empty: all
  std::optional<double> deadline_s;
  std::optional<double> timeout_s;
  std::optional<uint64_t> order_seed;  ///< which node is which rank; none: as they are numbered
  uint64_t largest_bytes = (1U << 20U) + 3;
  uint32_t repeats = 1;
  bool is_in_place = false;
  bool is_fast = false;
  bool is_matrix = false;
  bool is_thorough = false;
  bool is_json = false;
};
int check_run(const CheckOptions& options);

/// docs/bench.md says what each is. Letters as nccl-tests has them.
struct BenchOptions : RankOptions {
  std::string collective;
  std::string cluster;
  std::string least = "8";
  std::string most;         ///< empty: 4M, or `least`
  std::string step;         ///< empty: sizes are multiplied
  std::string check = "1";  ///< "" and "{}": given without a value
  std::string reduction = "sum";
  std::string type = "float";
  std::string root = "0";
  std::string algorithm;  ///< empty: the fastest
  std::string verbs;      ///< empty: as the environment says
  std::string json_path;  ///< empty: none
  std::optional<double> call_timeout_s;
  uint64_t factor = 4;
  uint32_t iterations = 20;
  uint32_t warmups = 5;
  uint32_t cycles = 1;
  uint32_t threads = 1;  ///< ignored, as the next three
  uint32_t gpus = 1;
  uint32_t aggregated = 1;
  std::string init_ids = "0";  ///< "" and "{}": given without a value
  bool is_fast = false;
  bool is_in_order = false;
  bool has_least = false;  ///< `least` was given, not the default; so `cycles`
  bool has_cycles = false;
  uint32_t block_ms = 300;           ///< of `bench stream`
  std::vector<std::string> fail_if;  ///< thresholds.h
  bool is_json = false;
  std::vector<std::string> given;  ///< options on the command line, by their long names if they have one
};
int bench_run(const BenchOptions& options);

/// docs/doctor.md says what each is.
struct DoctorOptions {
  std::string hosts;        ///< as of `up`; empty: this machine
  std::string cluster;      ///< that is up, instead
  std::string from;         ///< what was read before, instead; "-": standard input
  std::string bundle_path;  ///< empty: none; "-": stdout
  std::string html_path;    ///< likewise
  std::string apply;        ///< the check whose findings are to be mended; empty: none
  bool is_agreed = false;   ///< of apply
  bool lists = false;
  bool prints_script = false;
  bool is_json = false;
  double timeout_s = 60;  ///< for one machine
};
int doctor_run(const DoctorOptions& options);

/// docs/valkey.md says what each is.
struct BridgeOptions {
  std::vector<std::string> listen;
  std::vector<std::string> connect;  ///< as many
  std::vector<std::string> allowed;  ///< empty: everybody
  std::string stats;                 ///< empty: none
  std::string verbs;                 ///< empty: as the environment says
  uint64_t memory_bytes = uint64_t{4} << 30U;
  uint64_t linger_ms = 5000;
  uint64_t connect_timeout_ms = 5000;
  uint64_t drain_ms = 10000;
  uint32_t max_connections = 10000;
  uint32_t receive_bytes = 1U << 20U;
  bool listens_anywhere = false;
};
int bridge_run(const BridgeOptions& options);

/// One end of a measurement of matrix(), in a process of its own. Hidden. The client measures first.
struct ProbeOptions : EndOptions, Effort {
  std::string library;
  std::string device;
};
int probe(const ProbeOptions& options);

/// One rank of the group that measures relayed pairs for matrix(). Hidden.
struct RelayProbeOptions : Effort {
  std::vector<uint32_t> members;  ///< nodes that are in the group
};
int relay_probe(const RelayProbeOptions& options);

}  // namespace ringbolt::tools
