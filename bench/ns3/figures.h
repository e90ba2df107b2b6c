// What every program here measures.

#ifndef HOPCAST_FIGURES_H
#define HOPCAST_FIGURES_H

#include "ns3/network-module.h"

#include <cstdint>
#include <ctime>

static uint64_t hops = 0;

static void
FrameSent(ns3::Ptr<const ns3::Packet>)
{
    ++hops;
}

static double
ProcessorSeconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

#endif
