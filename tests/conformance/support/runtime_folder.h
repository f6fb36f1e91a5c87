// A runtime directory of the tests' own, so that they meet no other process of the user.
#pragma once

#include <filesystem>
#include <string>

namespace ringbolt::conformance {

/// Points RINGBOLT_RUNTIME_DIR at a fresh folder, leaves any cluster, and removes the folder again.
/// To be built before the first verbs call, while the process has one thread.
class RuntimeFolder {
 public:
  RuntimeFolder();
  ~RuntimeFolder();
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ringbolt::conformance
