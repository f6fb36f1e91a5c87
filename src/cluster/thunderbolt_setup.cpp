#include <fmt/format.h>

#include "cluster/thunderbolt.h"

namespace ringbolt::cluster {
namespace {

/// Rounds of half a second in which the other end's announcement arrives.
// 20 s in all: tools/stream_setup.cpp's kRoundS has to be longer.
constexpr int kAnnouncementRounds = 40;

std::string asking_text(const std::string& stream) {
  return fmt::format(
      "mkdir -p {0}\n"
      // -1 asks the driver for a free id. Ids that are there are left alone, so that the script may run again.
      "[ \"$(cat {0}/in_hopid)\" -gt 0 ] || echo -1 > {0}/in_hopid\n"
      "[ \"$(cat {0}/out_hopid)\" -gt 0 ] || echo -1 > {0}/out_hopid\n",
      stream);
}

/// The driver looks at the announcement when the folder is made. Under the lock the folder is always there: whoever
/// takes it away for good, while these commands of an `up` that died still run, ends them.
std::string adopting_text(const std::string& group, const std::string& stream) {
  return fmt::format(
      "mkdir -p {0}\n"
      "for i in $(seq {1}); do sleep 0.5; [ \"$(cat {0}/in_hopid)\" -gt 0 ] && break; "
      "flock {2} sh -c 'rmdir {0} && mkdir {0}'; done\n",
      stream, kAnnouncementRounds, group);
}

}  // namespace

std::string setup_script(const std::vector<StreamSetup>& setups, uint32_t host, bool adopts) {
  std::string text;
  // In the order in which rmdir works: the stream before the group that holds it. What was there before set-up is not
  // named.
  for (const StreamSetup& one : setups) {
    if (one.host == host && one.adopts == adopts) {
      const std::string stream = one.group + "/" + kStreamName;
      text += adopts ? adopting_text(one.group, stream) : asking_text(stream);
    }
  }
  return text;
}

std::vector<std::string> setup_folders(const std::vector<StreamSetup>& setups, uint32_t host) {
  std::vector<std::string> folders;
  for (const StreamSetup& one : setups) {
    if (one.host == host && one.makes_stream) {
      folders.push_back(one.group + "/" + kStreamName);
    }
    if (one.host == host && one.makes_group) {
      folders.push_back(one.group);
    }
  }
  return folders;
}

std::string undo_script(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& folder : folders) {
    if (folder.ends_with(std::string("/") + kStreamName)) {
      // The lock is that of adopting_text(), which may still run and would make the folder again.
      text += fmt::format("[ ! -d {1} ] || flock {1} sh -c '[ ! -d {0} ] || rmdir {0}'\n", folder,
                          folder.substr(0, folder.rfind('/')));
    } else {  // a group, which may have got streams of others since
      text += fmt::format("[ ! -d {0} ] || rmdir {0} 2> /dev/null || true\n", folder);
    }
  }
  return text;
}

}  // namespace ringbolt::cluster
