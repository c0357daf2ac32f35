import { describeSurvival } from './suite.ts'

describeSurvival('claude-code-2.1.197')
