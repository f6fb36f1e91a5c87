#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model.h"

/// Cables that Linux' stream driver (thunderbolt-stream, from 7.2) carries: what machines show of them, and what
/// follows. Everything here is pure.
namespace ringbolt::cluster {

/// The stream that set-up makes where there is none; the driver takes names of 8 letters at most.
inline constexpr const char* kStreamName = "ringbolt";
// Streams that one port bundles; the paths of as many device files fit into kMaxStreamBytes.
inline constexpr size_t kMaxCableRails = 8;

/// A stream in the driver's ConfigFS folder, <xdomain>.<service>/<name>.
struct ThunderboltStream {
  std::string name;
  std::string device = {};  ///< its file; "": none is there
  uint32_t index = 0;       ///< N of /dev/tbstreamN
  int32_t in_hopid = 0;     ///< 0: not set up
  int32_t out_hopid = 0;    ///< 0: not set up
  bool may_open = true;     ///< the user that ssh logs in as may read and write the file
  std::string holder = {};  ///< "ib_send_bw (pid 7)": who has it open; "": nobody that can be seen
  friend bool operator==(const ThunderboltStream&, const ThunderboltStream&) = default;
};

/// What is cabled to a port of a machine: an XDomain, and the streams that are set up towards it.
struct ThunderboltPeer {
  std::string xdomain;                   ///< "0-1"
  std::string own_id = {};               ///< of this machine's router, as the peer sees it
  std::string unique_id = {};            ///< of the peer's router; "": nobody is connected, or it does not say
  std::string device_name = {};          ///< how the peer calls itself
  std::string service = {};              ///< "0-1.0", the one whose key is "stream"; "": it offers none
  std::vector<std::string> groups = {};  ///< folders in ConfigFS that begin with this XDomain
  std::vector<ThunderboltStream> streams = {};
  friend bool operator==(const ThunderboltPeer&, const ThunderboltPeer&) = default;
};

/// What a machine shows of Thunderbolt. Read over ssh: tools/thunderbolt_look.cpp lets no letter into names and paths
/// that a shell gives a meaning.
struct ThunderboltLook {
  std::string kernel = {};                ///< "7.2.1-generic"
  std::string devices = {};               ///< path of the bus's devices in sysfs
  std::string configfs = {};              ///< path of the driver's folder in ConfigFS
  bool has_bus = false;                   ///< the first path is there
  bool has_configfs = false;              ///< ConfigFS is mounted
  bool has_driver = false;                ///< the second path is there
  std::vector<std::string> own_ids = {};  ///< of its routers, one for each domain
  std::vector<ThunderboltPeer> peers = {};
  std::vector<std::string> strays = {};  ///< device files of streams that no folder of ConfigFS names
  friend bool operator==(const ThunderboltLook&, const ThunderboltLook&) = default;
};

struct HostThunderbolt {
  std::string host;
  ThunderboltLook look;
};

/// What has to be made on a machine before there are streams.
struct StreamSetup {
  uint32_t host = 0;
  std::string group;          ///< path of <xdomain>.<service>
  bool makes_group = false;   ///< it is not there yet
  bool makes_stream = false;  ///< group/kStreamName is not there yet
  bool adopts = false;        ///< takes the hop ids that the other end has announced; else asks for some, and is first
  std::string peer;           ///< host at the other end
  friend bool operator==(const StreamSetup&, const StreamSetup&) = default;
};

/// What follows from what was found. Without problems and set-ups, `cluster` is whole.
struct StreamCabling {
  Cluster cluster;
  std::vector<StreamSetup> setups;
  std::vector<std::string> problems;  ///< each names the machine, the path, what was found, and what to do
  std::vector<std::string> notes;     ///< what was passed over, and why
};

/// True if the machine has the driver and somebody cabled, or streams: it is meant to use them. Thread-safe.
bool offers_streams(const ThunderboltLook& look);

/// Why a machine can't have streams at all: no bus, nobody cabled, a kernel that is too old, no ConfigFS, no driver;
/// "" if it can. Thread-safe.
std::string why_no_streams(const HostThunderbolt& host);

/// Finds the cables between the machines by the identifiers of their routers: two ends belong together if each names
/// the other's. All streams between two routers are rails of one cable; their ends are matched by name, else by hop
/// ids. Where a cable has no stream, it says what has to be made. Thread-safe.
StreamCabling find_stream_cables(const std::vector<HostThunderbolt>& hosts);

/// The shell commands that make the streams of `setups` that are on machine `host`; those that ask for hop ids, or
/// those that adopt them: the former have to be done on every machine first. "" if there is nothing to do. Thread-safe.
/// For `sh -e` as root; may run again. Adopting takes up to 20 s for each stream whose other end stays silent, and then
/// ends without an error: look at the machine again.
std::string setup_script(const std::vector<StreamSetup>& setups, uint32_t host, bool adopts);

/// What takes away again, in this order, what the set-ups on `host` make: paths of folders. Thread-safe.
std::vector<std::string> setup_folders(const std::vector<StreamSetup>& setups, uint32_t host);

/// The commands that remove these folders, as far as they are there. Thread-safe. Paths are put in unquoted: they
/// must be of setup_folders().
std::string undo_script(const std::vector<std::string>& folders);

}  // namespace ringbolt::cluster
