#include "bootstrap/environment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "bootstrap/frame.h"
#include "bootstrap/hello.h"
#include "bootstrap/mlx_hostfile.h"

namespace ringbolt::bootstrap {
namespace {

// A day.
constexpr uint64_t kMaxTimeoutMs = 24ULL * 3600 * 1000;
/// Ports that are made up lie here: below the range that Linux gives to outgoing connections.
constexpr uint32_t kFirstMadeUpPort = 20'000;
constexpr uint32_t kMadeUpPorts = 10'000;

struct Variable {
  std::string name;
  std::string value;
};

/// A number and where it is from.
struct Number {
  uint32_t value = 0;
  std::string source;  ///< "RANK=3"
};

/// FNV-1a: the same on all machines, as std::hash need not be.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash;
}

uint16_t made_up_port(std::string_view text) {
  return static_cast<uint16_t>(kFirstMadeUpPort + hash_of(text) % kMadeUpPorts);
}

std::string shown(const Variable& variable) {
  const auto bytes = std::as_bytes(std::span(variable.value));
  return fmt::format("{}={}{}", variable.name, printable(bytes, 60), bytes.size() > 60 ? "..." : "");
}

// All refusals here are EINVAL: what the program can do about them stands in the words.
[[noreturn]] void refuse(const std::string& object, const std::string& why, const std::string& remedy) {
  throw base::Error(EINVAL, why, object, remedy);
}

uint64_t number_in(const Variable& variable, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const std::string& text = variable.value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // No sign, no spaces, no other base: launchers write none.
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    refuse(shown(variable), "read the number", fmt::format("it must be a decimal number from {} to {}", least, most));
  }
  return value;
}

// Refers to its arguments; run() once.
class Reading {
 public:
  Reading(const Environment& environment, const ReadFile& read) : environment_(environment), read_(read) {}

  Config run() {
    find_rank_and_size();
    if (config_.rank >= config_.n_ranks) {
      refuse(rank_->source, fmt::format("rank {} of {} ({})", config_.rank, config_.n_ranks, size_->source),
             "ranks count from 0");
    }
    if (config_.n_ranks > 1) {
      find_coordinator();
    }
    find_settings();
    return config_;
  }

 private:
  std::optional<Variable> get(const std::string& name) const {
    const auto found = environment_.find(name);
    // An empty one counts as set: some variables mean something by it.
    return found == environment_.end() ? std::nullopt : std::optional<Variable>({found->first, found->second});
  }

  std::optional<Variable> first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto found = get(name)) {
        return found;
      }
    }
    return std::nullopt;
  }

  /// A number that several conventions give: they must agree.
  void agree(std::optional<Number>& known, const Variable& variable, uint64_t value, const char* what) const {
    const Number number{static_cast<uint32_t>(value), shown(variable)};
    // Two launchers, one within the other: to guess would send ranks to different meetings.
    if (known && known->value != number.value) {
      refuse(fmt::format("{} and {}", known->source, number.source),
             fmt::format("find the {}: {} or {}", what, known->value, number.value),
             "these contradict each other: unset one, or set RINGBOLT_RANK and RINGBOLT_WORLD_SIZE");
    }
    if (!known) {
      known = number;
    }
  }

  void take_rank(const char* name) {
    if (const auto variable = get(name)) {
      agree(rank_, *variable, number_in(*variable, 0, kMaxRanks - 1), "rank");
    }
  }

  void take_size(const char* name) {
    if (const auto variable = get(name)) {
      agree(size_, *variable, number_in(*variable, 1, kMaxRanks), "number of ranks");
    }
  }

  std::string text_of_file(const Variable& variable) const {
    try {
      return read_(variable.value, false);
    } catch (const base::Error& error) {
      throw base::Error(error.errno_value(), "read the file", shown(variable),
                        "unset it, or name a file that is there");
    }
  }

  template <class T>
  static const T& parsed(const base::Parsed<T>& result, const Variable& variable) {
    if (!result) {
      refuse(shown(variable), "read the file: " + result.error().text(), "mend the file");
    }
    return *result;
  }

  const MlxRingfile& ring_of(const Variable& file) {
    if (!ring_) {
      const std::string text = text_of_file(file);
      // Of a single rank mlx.launch writes an empty file; nobody has to be found then.
      const bool is_of_one = text.find_first_not_of(" \n") == std::string::npos;
      ring_ = is_of_one ? MlxRingfile{{{}}} : parsed(parse_mlx_ringfile(text), file);
    }
    return *ring_;
  }

  void take_mlx() {
    if (const auto rank = first_of({"JACCL_RANK", "MLX_RANK"})) {
      agree(rank_, *rank, number_in(*rank, 0, kMaxRanks - 1), "rank");
    }
    // Without a rank these files say nothing about this process.
    if (!rank_) {
      return;
    }
    if (const auto file = first_of({"JACCL_IBV_DEVICES", "MLX_IBV_DEVICES"})) {
      agree(size_, *file, parsed(parse_jaccl_devices(text_of_file(*file)), *file).n_ranks(), "number of ranks");
    }
    if (const auto file = get("MLX_HOSTFILE")) {
      agree(size_, *file, ring_of(*file).ranks.size(), "number of ranks");
    }
  }

  /// mpirun starts its helpers on other machines with srun, so Slurm's variables, of the helper's step, stand beside
  /// its own.
  bool is_rank_of_mpirun() const { return first_of({"OMPI_COMM_WORLD_RANK", "MPI_LOCALNRANKS"}).has_value(); }

  /// What PMI and PMIx say is srun's, not mpirun's.
  bool is_task_of_slurm() const { return get("SLURM_PROCID") && !is_rank_of_mpirun(); }

  void find_rank_and_size() {
    // In the order of environment.h: what is found first decides, and later steps only fill in.
    take_rank("RINGBOLT_RANK");
    take_size("RINGBOLT_WORLD_SIZE");
    if (rank_.has_value() != size_.has_value()) {
      refuse(rank_ ? rank_->source : size_->source, "find the rank and the number of ranks",
             "set RINGBOLT_RANK and RINGBOLT_WORLD_SIZE, both or neither");
    }
    if (!rank_) {
      take_rank("RANK");
      take_rank("OMPI_COMM_WORLD_RANK");
      take_size("WORLD_SIZE");
      take_size("OMPI_COMM_WORLD_SIZE");
      // What srun has started once per machine, a shell or another launcher, has nodes and ranks that are no tasks of
      // Slurm's.
      const bool has_other_say = rank_ || size_ || first_of({"RINGBOLT_NODE", "JACCL_RANK", "MLX_RANK"});
      if (!has_other_say || !is_task_of_slurm()) {
        take_rank("PMI_RANK");
        take_rank("PMIX_RANK");
        take_size("PMI_SIZE");
      }
      take_mlx();
      is_said_by_launcher_ = rank_.has_value();
    }
    if (!rank_ && !size_) {
      take_rank("RINGBOLT_NODE");
      take_size("RINGBOLT_NODES");
    }
    if ((!rank_ || !size_) && !get("RINGBOLT_NODE")) {  // srun --mpi=pmix gives a rank alone
      take_rank("SLURM_PROCID");
      take_size(get("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
    }
    if (!rank_ || !size_) {
      refuse(rank_   ? rank_->source
             : size_ ? size_->source
                     : "the environment",
             fmt::format("find the {}", rank_ ? "number of ranks" : "rank"),
             "start the program with ringbolt run, torchrun, mpirun, srun or mlx.launch, or set RINGBOLT_RANK, "
             "RINGBOLT_WORLD_SIZE and RINGBOLT_COORDINATOR");
    }
    config_.rank = rank_->value;
    config_.n_ranks = size_->value;
    // For messages: people have to find the variable that they set.
    config_.source = rank_->source + ", " + size_->source;
  }

  void meet_at(const Variable& variable, const HostPort& at) {
    config_.host = at.host;
    config_.port = at.port;
    config_.source += ", " + shown(variable);
  }

  /// A place on which no variable says which port: RINGBOLT_GROUP_PORT, else one made of `seed`.
  void meet_at_made_up(const Variable& variable, const std::string& host, const std::string& seed) {
    const auto port = get("RINGBOLT_GROUP_PORT");
    meet_at(variable, {host, port ? static_cast<uint16_t>(number_in(*port, 1, 65535)) : made_up_port(seed)});
    config_.source += fmt::format("; port {} {}", config_.port, port ? "from RINGBOLT_GROUP_PORT" : "made up of it");
  }

  bool take_address(const std::optional<Variable>& variable) {
    if (!variable) {
      return false;
    }
    const auto at = parse_host_port(variable->value);
    if (!at) {
      refuse(shown(*variable), "find rank 0: the value " + at.error().problem, "write 10.0.0.1:4000 or [fd77::1]:4000");
    }
    check_host(*variable, at->host);
    meet_at(*variable, *at);
    return true;
  }

  static void check_host(const Variable& variable, const std::string& host) {
    if (const std::string problem = problem_of_host(host); !problem.empty()) {
      refuse(shown(variable), "find the place to meet", problem);
    }
  }

  /// A host alone, without brackets.
  static std::string host_in(const Variable& variable) {
    const auto host = parse_host(variable.value);
    if (!host) {
      refuse(shown(variable), "find the place to meet: the value " + host.error().problem,
             "write a name, 10.0.0.1 or fd77::1");
    }
    check_host(variable, *host);
    return *host;
  }

  bool take_torchrun() {
    const auto host = get("MASTER_ADDR");
    const auto port = get("MASTER_PORT");
    if (!host || !port || host->value.empty()) {
      if (host || port) {
        refuse(shown(host ? *host : *port), "find rank 0", "set MASTER_ADDR and MASTER_PORT, both or neither");
      }
      return false;
    }
    // torchrun itself listens at that port, for its store. So all ranks take the next one, without a word between
    // them.
    const bool is_taken = get("TORCHELASTIC_RUN_ID").has_value();
    const uint64_t number = number_in(*port, 1, is_taken ? 65534 : 65535) + (is_taken ? 1 : 0);
    meet_at({host->name, fmt::format("{}, {}", host->value, shown(*port))},
            {host_in(*host), static_cast<uint16_t>(number)});
    return true;
  }

  bool take_slurm() {
    // A step of a helper of mpirun's is on one machine, and the ranks where mpirun runs are in none.
    const bool is_own = !is_rank_of_mpirun();
    auto nodes = is_own ? get("SLURM_STEP_NODELIST") : std::nullopt;
    nodes = nodes ? nodes : first_of({"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    const auto job = get("SLURM_JOB_ID");
    if (!nodes || !job) {
      return false;
    }
    const auto host = first_host_of(nodes->value);
    if (!host) {
      refuse(shown(*nodes), "find rank 0: the list " + host.error().problem, "set RINGBOLT_COORDINATOR=HOST:PORT");
    }
    const auto step = is_own ? get("SLURM_STEP_ID") : first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
    // Job and step: two jobs on one machine meet at different ports, by all likelihood.
    meet_at_made_up(*nodes, *host, job->value + "." + (step ? step->value : ""));
    return true;
  }

  /// All ranks are on this machine, as mpirun says.
  bool take_local_mpi() {
    const auto n_local = first_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
    const auto job = first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
    if (!n_local || number_in(*n_local, 1, kMaxRanks) != config_.n_ranks || (!job && !get("RINGBOLT_GROUP_PORT"))) {
      return false;
    }
    meet_at_made_up(*n_local, "127.0.0.1", job ? job->value : "");
    return true;
  }

  /// Whether the variable is about a neighbour that is elsewhere: with an address of its own, or with none, as only
  /// streams between machines have none.
  bool is_of_another_machine(const std::string& name, const std::string& value) const {
    constexpr std::string_view kAddress = "RINGBOLT_ADDR_";
    constexpr std::string_view kDevice = "RINGBOLT_DEVICE_";
    if (name.starts_with(kDevice)) {
      return !get(std::string(kAddress) + name.substr(kDevice.size()));
    }
    return name.starts_with(kAddress) && !value.starts_with("127.");
  }

  bool take_cluster() {
    const auto cluster = get("RINGBOLT_CLUSTER");
    if (!cluster || !get("RINGBOLT_NODE")) {
      return false;
    }
    // Clusters of different runtime folders may have the same name.
    const auto folder = get("RINGBOLT_RUNTIME_DIR");
    const std::string seed = cluster->value + "\n" + (folder ? folder->value : "");
    if (const auto host = get("RINGBOLT_MEETING_HOST")) {
      meet_at_made_up(*host, host->value, seed);
      return true;
    }
    // 127.0.0.1 means another machine to each of them.
    for (const auto& [name, value] : environment_) {
      if (is_of_another_machine(name, value)) {
        refuse(shown(*cluster), fmt::format("find rank 0: the nodes share no machine ({}={})", name, value),
               "set RINGBOLT_COORDINATOR=HOST:PORT, an address of node 0 that all nodes reach");
      }
    }
    meet_at_made_up(*cluster, "127.0.0.1", seed);
    return true;
  }

  void find_coordinator() {
    // Each takes nothing, or all; the first that does decides.
    const bool is_found = take_address(get("RINGBOLT_COORDINATOR")) || take_torchrun() ||
                          take_address(first_of({"JACCL_COORDINATOR", "MLX_JACCL_COORDINATOR"})) || take_ring() ||
                          take_local_mpi() || take_cluster() || take_slurm();
    if (!is_found) {
      refuse(config_.source, "find rank 0",
             "set RINGBOLT_COORDINATOR=HOST:PORT, rank 0's address and a free port of it");
    }
  }

  /// Nodes of a cluster have a place of their own, and a file with another number of rows is about other ranks: it may
  /// only stand in the shell that has started these.
  bool take_ring() {
    const auto file = get("MLX_HOSTFILE");
    const bool is_of_cluster = get("RINGBOLT_MEETING_HOST") || (get("RINGBOLT_NODE") && !is_said_by_launcher_);
    if (!file || is_of_cluster || ring_of(*file).ranks.size() != config_.n_ranks) {
      return false;
    }
    meet_at(*file, ring_of(*file).ranks[0][0]);
    return true;
  }

  void find_settings() {
    if (const auto group = get("RINGBOLT_GROUP")) {
      config_.group = group->value;
    }
    if (const auto address = get("RINGBOLT_BIND")) {
      config_.bind_address = address->value.empty() ? "" : host_in(*address);
    }
    if (const auto timeout = get("RINGBOLT_JOIN_TIMEOUT_MS")) {
      config_.timeout_ms = number_in(*timeout, 1, kMaxTimeoutMs);
    }
    const auto secret = get("RINGBOLT_SECRET");
    const auto file = get("RINGBOLT_SECRET_FILE");
    // Which one was meant can't be told, and a wrong secret looks like an attack.
    if (secret && file) {
      refuse("RINGBOLT_SECRET and RINGBOLT_SECRET_FILE", "find the secret", "set one of them");
    }
    if (secret) {
      if (secret->value.empty()) {
        refuse("RINGBOLT_SECRET", "the secret is empty", "unset the variable to do without a secret");
      }
      config_.secret = secret->value;
    }
    if (file) {
      try {
        // The file's name may be shown, its contents never.
        config_.secret = read_(file->value, true);
      } catch (const base::Error& error) {
        throw base::Error(error.errno_value(), error.call(), shown(*file), "name a file with the secret, of mode 0600");
      }
    }
  }

  const Environment& environment_;
  const ReadFile& read_;
  Config config_;
  std::optional<Number> rank_;
  std::optional<Number> size_;
  bool is_said_by_launcher_ = false;  ///< the rank
  std::optional<MlxRingfile> ring_;
};

}  // namespace

bool is_of_launcher(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"RINGBOLT_RANK", "RINGBOLT_WORLD_SIZE", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
       "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_RANK",
       "PMI_SIZE", "PMIX_RANK", "JACCL_RANK", "MLX_RANK", "JACCL_COORDINATOR", "MLX_JACCL_COORDINATOR",
       "MLX_HOSTFILE"});
  return std::ranges::find(kNames, name) != kNames.end();
}

Config config_from(const Environment& environment, const ReadFile& read) { return Reading(environment, read).run(); }

}  // namespace ringbolt::bootstrap
