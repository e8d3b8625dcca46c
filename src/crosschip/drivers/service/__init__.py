"""The process of a driver: takes requests on a socket, and has the device answer them."""
