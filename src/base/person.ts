/**
 * What a person may do. `operator`: everything. `viewer`: read what an operator reads. `moderator`: that, and decide
 * on requests for moderation.
 */
export const ROLES = ['operator', 'viewer', 'moderator'] as const
export type Role = (typeof ROLES)[number]

/** Somebody with a token of their own. The holder of the operator's token file is the person `operator`. */
export interface Person {
  readonly name: string
  readonly role: Role
  /** Their login on GitHub. */
  readonly github?: string
}
