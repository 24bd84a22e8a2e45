package sweep

// ParseRoutes is parseRoutes.
var ParseRoutes = parseRoutes
