#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "blocks.h"
#include "control.h"
#include "options.h"

namespace ringbolt::bench {

/// A block that takes longer ends the worker: spinning workers that nobody waits for any more would spoil everything
/// that is measured after them.
constexpr unsigned kBlockDeadlineS = 60;

/// A worker's life: pin, open the peer, say `ready`, run blocks until told to quit. Returns the exit code.
/// `Channel` is built as Channel(options, control) and describes itself with description().
template <class Channel>
int serve(const Options& options) {
  Control control(options.control, options.rank);
  try {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    pin_to_core_of(options.rank);
    TurnPage& page = map_turn_page(options.page);
    Samples samples;
    Channel channel(options, control);
    control.answer("ready " + channel.description());
    Command command;
    for (uint64_t round = 1; control.next(command); ++round) {
      alarm(kBlockDeadlineS);
      control.answer(run_block(channel, Block{command, page, round, samples}));
      alarm(0);
    }
    return 0;
  } catch (const std::exception& error) {
    control.answer(std::string("error ") + error.what());
    return 1;
  }
}

/// main() of a worker that gets its rank on the command line.
template <class Channel>
int worker_main(int argc, char** argv) {
  try {
    return serve<Channel>(parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}

}  // namespace ringbolt::bench
