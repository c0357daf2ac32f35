import type { GitHubEvent } from '../core/event.ts'

/** Why an event is nothing to us, as far as it says so itself. */
export function whyNotOurs(
  { type, repository, sender, comment }: GitHubEvent,
  repositories: readonly string[] | undefined,
): string | undefined {
  if (repository === undefined) return `${type} is about no repository`
  const isOurs = repositories?.some((one) => one.toLowerCase() === repository.toLowerCase()) ?? true
  if (!isOurs) return `${repository} is not among github.repositories`
  return sender?.isBot && comment !== undefined ? 'machines are not answered' : undefined
}
