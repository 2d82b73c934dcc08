"""The answers' own way from the model replicas to the ingresses: Ray Serve carries calls, faults and cancellation, these connections what
the engines say."""
