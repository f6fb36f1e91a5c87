#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "bootstrap/config.h"

namespace ringbolt::bootstrap {

/// Names and values of variables.
using Environment = std::map<std::string, std::string>;
/// This process's. Thread-safe as long as nobody changes it. A copy. Of a name that stands twice the first counts, as
/// with getenv().
Environment environment_of_process();

/// Gives the text of a file that a variable names. Throws base::Error. `is_secret`: who may read the file counts.
using ReadFile = std::function<std::string(const std::string& path, bool is_secret)>;
/// The real one: regular files of up to kMaxMlxFileBytes; secrets must give others no permission at all (mode o=), are
/// cut of one line end and not empty.
std::string read_file(const std::string& path, bool is_secret);

/// Where this rank meets the others, by the variables that launchers set. Pure, but for `read`.
///
/// Rank and number of ranks: RINGBOLT_RANK and RINGBOLT_WORLD_SIZE, if they are set. Else what torchrun (RANK,
/// WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_RANK, _SIZE), PMI (PMI_RANK, PMI_SIZE, PMIX_RANK) and MLX or JACCL
/// (JACCL_RANK, MLX_RANK; the rows of the files that JACCL_IBV_DEVICES, MLX_IBV_DEVICES or MLX_HOSTFILE name) say: if
/// several are there, all must say the same. Else the emulated cluster (RINGBOLT_NODE, RINGBOLT_NODES). Else Slurm
/// (SLURM_PROCID, SLURM_NTASKS), which often only starts another launcher, or the shell in which a cluster was started.
///
/// Where: RINGBOLT_COORDINATOR; MASTER_ADDR and MASTER_PORT; JACCL_COORDINATOR or MLX_JACCL_COORDINATOR; MLX_HOSTFILE,
/// if it is about these ranks; this machine, if all ranks are on it; Slurm's first host. docs/environment.md has the
/// rest.
///
/// Throws base::Error, which names the variable and its value: not a decimal number, out of range, contradicting
/// another one, or missing.
Config config_from(const Environment& environment, const ReadFile& read);

/// Whether the variable of that name tells a single process which rank it is or, as launchers do, where ranks meet. A
/// file of devices says how many ranks only beside one of these. What Slurm says is none: nodes of a cluster pass it
/// over.
bool is_of_launcher(std::string_view name);

/// The first host of Slurm's list: "n0" of "n[0-3,7],m1", "r1n08" of "r[1-2]n[08-09]".
base::Parsed<std::string> first_host_of(std::string_view nodelist);

}  // namespace ringbolt::bootstrap
