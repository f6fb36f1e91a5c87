#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringbolt::cluster {

/// The folder that holds all state of this user's devices and clusters. The trust boundary is the user, so every
/// folder made here has mode 0700, is owned by the user and reached through no symbolic link of somebody else's.
/// A value: knows paths, owns nothing. Thread-safe.
class RuntimeDir {
 public:
  /// $RINGBOLT_RUNTIME_DIR, else $XDG_RUNTIME_DIR/ringbolt (if $XDG_RUNTIME_DIR is a folder), else
  /// /tmp/ringbolt-<uid>. Makes it if it is missing, then checks it. Throws base::Error naming path and remedy. Reads
  /// the environment: not beside a setenv() of another thread.
  static RuntimeDir from_environment();
  /// The same for a given absolute path. EINVAL for a path that is not absolute; else as make_private_dir().
  static RuntimeDir at(const std::string& root);

  const std::string& root() const { return root_; }
  /// Where processes of the default device have their sockets; made (and checked) by make_default_slots().
  std::string default_dir() const { return root_ + "/default"; }
  std::string default_slots() const { return default_dir() + "/slots"; }
  std::string clusters() const { return root_ + "/clusters"; }
  std::string cluster(std::string_view name) const { return clusters() + "/" + std::string(name); }
  std::string cluster_slots(std::string_view name) const { return cluster(name) + "/slots"; }
  /// Of a node whose ports have interfaces of their own: it shares no memory with others.
  std::string node_slots(std::string_view name, uint32_t node) const {
    return cluster(name) + "/slots-" + std::to_string(node);
  }
  std::string cluster_file(std::string_view name) const { return cluster(name) + "/cluster.json"; }
  std::string control(std::string_view name) const { return cluster(name) + "/control"; }
  /// The faults of the cluster's frames; there while there are some.
  std::string fault_file(std::string_view name) const { return cluster(name) + "/faults"; }
  /// What a port of the cluster has counted, see counter_page.h. Ports outside clusters have `<device>.counters` in
  /// default_dir(), default_slots() or the folder of make_network_slots().
  std::string counter_file(std::string_view name, uint32_t node, std::string_view device) const {
    return cluster(name) + "/" + std::to_string(node) + "-" + std::string(device) + kCounterSuffix;
  }
  static constexpr const char* kCounterSuffix = ".counters";
  std::string node_file(std::string_view name, uint32_t node) const {
    return cluster(name) + "/node-" + std::to_string(node) + ".ports";
  }

  /// Where the node's agent waits for programs that use ringbolt0.
  std::string overlay_socket(std::string_view name, uint32_t node) const {
    return cluster(name) + "/overlay-" + std::to_string(node);
  }

  /// Makes and checks default_slots(); returns it. Throws base::Error.
  std::string make_default_slots() const;
  /// Where the processes of this network namespace have their sockets that share its interfaces without a cluster; made
  /// and checked. Throws base::Error.
  std::string make_network_slots() const;

 private:
  explicit RuntimeDir(std::string root) : root_(std::move(root)) {}

  std::string root_;
};

/// Makes `path` with mode 0700 if it is missing, then check_private_dir(). The parent must exist. Throws base::Error.
/// Two processes may make it at once: the loser finds it there and only checks it. Folders above `path` are the
/// caller's to trust: only the last part is looked at for a symbolic link.
void make_private_dir(const std::string& path);

/// Throws base::Error, naming path and remedy, unless `path` is a folder of this user's that nobody else may enter.
/// ENOTDIR for a file or symbolic link, EPERM for a wrong owner or mode, else what lstat says.
void check_private_dir(const std::string& path);

}  // namespace ringbolt::cluster
