-- A deferred constraint would speak up only at COMMIT, when it is too late to leave one row out.
set constraints all immediate
