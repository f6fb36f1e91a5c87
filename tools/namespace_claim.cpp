#include "namespace_claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/names.h"
#include "cluster/read_file.h"
#include "cluster_state.h"
#include "failure.h"
#include "namespaces.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "/run/ringbolt";

std::string claim_path(const std::string& cluster) { return fmt::format("{}/{}", kFolder, cluster); }

/// Where the claim on a name leads; empty if there is none. Throws base::Error where nobody can tell.
std::string claimed_by(const std::string& cluster) {
  std::error_code error;
  const fs::path target = fs::read_symlink(claim_path(cluster), error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw base::Error(error.value(), "read the claim on network namespaces", claim_path(cluster));
  }
  return target.string();
}

void remove_claim(const std::string& cluster) {
  if (::unlink(claim_path(cluster).c_str()) != 0 && errno != ENOENT) {
    throw base::Error(errno, "unlink", claim_path(cluster), "remove it by hand");
  }
}

/// True too where nobody can tell: whose folder we may not look into.
bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

base::UniqueFd lock_claims() {
  if (::mkdir(kFolder, 0755) != 0 && errno != EEXIST) {
    throw base::Error(errno, "mkdir", kFolder, "run it as root, or mount a file system of your own at /run");
  }
  return lock_file(fmt::format("{}/.lock", kFolder));
}

/// Under the lock. Returns whether there was something.
bool clear_name(const cluster::RuntimeDir& dir, const std::string& cluster) {
  const std::string owner = claimed_by(cluster);
  if (!owner.empty() && owner != dir.cluster(cluster) && is_there(owner)) {
    throw UsageError(
        fmt::format("the network namespaces rb-{}-* belong to the cluster in {}; take that down first, or "
                    "choose another --name",
                    cluster, owner));
  }
  const bool had_some = !owner.empty() || !namespaces_of(cluster).empty();
  remove_namespaces(cluster);
  remove_claim(cluster);
  return had_some;
}

}  // namespace

bool owns_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster) {
  return claimed_by(cluster) == dir.cluster(cluster);
}

NamespaceClaim claim_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster) {
  NamespaceClaim claim{lock_claims(), false};
  claim.had_leftovers = clear_name(dir, cluster);
  if (::symlink(dir.cluster(cluster).c_str(), claim_path(cluster).c_str()) != 0) {
    throw base::Error(errno, "symlink", claim_path(cluster));
  }
  return claim;
}

void give_up_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster) {
  if (owns_namespaces(dir, cluster)) {
    remove_namespaces(cluster);
    remove_claim(cluster);
  }
}

void release_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster) {
  if (owns_namespaces(dir, cluster)) {
    const base::UniqueFd lock = lock_claims();
    give_up_namespaces(dir, cluster);
  }
}

bool remove_dead_namespaces(const cluster::RuntimeDir& dir, const std::string& cluster) {
  if (claimed_by(cluster).empty() && namespaces_of(cluster).empty()) {
    return false;
  }
  const base::UniqueFd lock = lock_claims();
  return clear_name(dir, cluster);
}

size_t release_dead_claims(const cluster::RuntimeDir& dir) {
  std::vector<std::string> dead;
  for (const std::string& name : cluster::names_in(kFolder)) {
    if (cluster::is_cluster_name(name) && owns_namespaces(dir, name) && !is_there(dir.cluster(name))) {
      dead.push_back(name);
    }
  }
  for (const std::string& name : dead) {
    release_namespaces(dir, name);
  }
  return dead.size();
}

}  // namespace ringbolt::tools
