"""Admission: the plugins of the API server that change new objects or refuse them.

One file has one plugin. `chain` runs them in the order of kube-apiserver, and `plugin_set` says
which of them run. `plugin` says what a plugin is, and which objects were admitted before. Types'
defaults and validation, which come between the changes and the refusals, are not admission; they
live one package up.

Not simulated: ServiceAccount, PodSecurity, webhooks and policies, for none of them follows from
objects that a scheduler reads.
"""
