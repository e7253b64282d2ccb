#ifndef DDS_VERSION_H
#define DDS_VERSION_H

#define DDS_VERSION "11.0.0"
#define DDS_VERSION_MAJOR 11
#define DDS_VERSION_MINOR 0
#define DDS_VERSION_PATCH 0
#define DDS_VERSION_TWEAK
#define DDS_PROJECT_NAME "CycloneDDS"
#define DDS_GIT_HASH "unknown"

#define DDS_HOST_NAME "Linux"
#define DDS_TARGET_NAME "Linux"

#endif
