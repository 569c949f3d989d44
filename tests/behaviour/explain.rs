//! `isotherm explain`: why a request goes where it goes.
