"""The process of a driver: receives requests on a socket and answers them with its device."""
