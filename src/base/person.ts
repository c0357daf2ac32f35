/**
 * `operator` may do everything, `viewer` may read everything an operator reads, `moderator` may also decide requests for
 * moderation.
 */
export const ROLES = ['operator', 'viewer', 'moderator'] as const
type Role = (typeof ROLES)[number]

/** A person with a token of their own. The operator's token file stands for the person `operator`. */
export interface Person {
  readonly name: string
  readonly role: Role
  /** GitHub login. */
  readonly github?: string
}
