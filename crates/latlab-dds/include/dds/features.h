/* The parts of the C library that are built: no security, no type libraries, no topic discovery. */
#ifndef _DDS_PUBLIC_FEATURES_H_
#define _DDS_PUBLIC_FEATURES_H_

#define DDS_HAS_LIFESPAN 1
#define DDS_HAS_DEADLINE_MISSED 1
#define DDS_HAS_NETWORK_PARTITIONS 1
#define DDS_IS_STATIC_LIBRARY 1

#endif
