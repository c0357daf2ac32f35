import { describeRuntime } from './conformance.ts'
import { openTmuxFixture } from './tmux-fixture.ts'

describeRuntime('tmux', openTmuxFixture)
