/* The library is linked statically: no symbol is exported. */
#ifndef DDS_EXPORT_H
#define DDS_EXPORT_H

#define DDS_EXPORT
#define DDS_EXPORT_INTERNAL_FUNCTION
#define DDS_NO_EXPORT
#define DDS_DEPRECATED __attribute__ ((__deprecated__))
#define DDS_DEPRECATED_EXPORT DDS_DEPRECATED
#define DDS_DEPRECATED_NO_EXPORT DDS_DEPRECATED
#define DDS_INLINE_EXPORT

#endif
