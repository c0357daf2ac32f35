import type { Approval } from '../../../model/rule.ts'

/** Whose word it takes where something is asked: `2 of ada, ben, cleo`. */
export function approvalText({ approvers, quorum }: Approval = { quorum: 1 }): string {
  if (approvers !== undefined) {
    return quorum === approvers.length && quorum === 1
      ? approvers[0]!
      : `${quorum} of ${approvers.join(', ')}`
  }
  return quorum === 1 ? 'a person' : `${quorum} people`
}
