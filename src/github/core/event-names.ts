import { emitterEventNames } from '@octokit/webhooks'

/** What X-GitHub-Event can be, as far as the library knows; without the actions, `issues` and not `issues.opened`. */
export const EVENT_NAMES: readonly string[] = emitterEventNames.filter((name) => !name.includes('.'))
