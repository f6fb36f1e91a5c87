#pragma once

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "serve.h"

namespace ringbolt::bench {

/// main() of a worker of MPI, which says who this rank is.
template <class Channel>
int mpi_main(int argc, char** argv) {
  int code = 2;
  bool is_open = false;
  try {
    Options options = parse_options(argc, argv);
    const int wanted = options.may_have_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int level = 0;
    MPI_Init_thread(&argc, &argv, wanted, &level);
    is_open = true;
    if (level < wanted) {
      throw std::runtime_error("this MPI was built without MPI_THREAD_MULTIPLE");
    }
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    options.rank = static_cast<unsigned>(rank);
    options.ranks = static_cast<unsigned>(ranks);
    code = serve<Channel>(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  }
  if (is_open && code != 0) {
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  if (is_open) {
    MPI_Finalize();
  }
  return code;
}

}  // namespace ringbolt::bench
